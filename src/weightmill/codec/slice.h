#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "bit_writer.h"
#include "golomb_rice.h"
#include "palette.h"

namespace weightmill::mlw {

/// Header codes.  [docs/weight-stream.md §2]
inline constexpr unsigned kNoRunsCode = 6;        ///< ZDIV: zero-run mode is off
inline constexpr unsigned kEndOfStreamCode = 7;   ///< ZDIV: no slice follows
inline constexpr unsigned kUncompressedCode = 7;  ///< WDIV
inline constexpr std::size_t kMaxSliceWeights = 32768;
/// The vendor's encoders never use the last value of the length field.
inline constexpr std::size_t kMaxEncodedSliceWeights = 32767;
/// The NPU fetches whole 128-bit words.
inline constexpr std::size_t kStreamAlignmentBytes = 16;

/// Symbols of one chunk of a slice's body.  [docs/weight-stream.md §6]
inline constexpr unsigned kChunkWeights = 12;
inline constexpr unsigned kWideChunkWeights = 8;  ///< uncompressed indices of more than 5 bits
inline constexpr unsigned kChunkRunBits = 12;
inline constexpr unsigned kCoarseChunkRunBits = 8;  ///< run divisor 2^3
inline constexpr std::int64_t kMaxWeightLead = 8;   ///< weights may be this far ahead of their runs

constexpr unsigned chunk_weights(WeightCode code, unsigned index_bits) noexcept {
  return code.is_uncompressed() && index_bits > 5 ? kWideChunkWeights : kChunkWeights;
}
constexpr unsigned chunk_run_bits(RunCode code) noexcept {
  return code.divisor() < 3 ? kChunkRunBits : kCoarseChunkRunBits;
}

/// One slice: a run of indices with one code, and the zero runs between them.
struct Slice {
  std::span<const std::uint16_t> indices;  ///< 1 to 32768
  std::span<const std::uint32_t> runs;     ///< zero-run mode: one an index, with a new palette one more; else none
  WeightCode weight_code;
  RunCode run_code;
  const Palette& palette;
  bool sends_palette;  ///< a section's first slice does
};

/// A string of bits that is read a word at a time; see kernels/bit_planes.h for what lies behind its end.
class BitPlane {
 public:
  /// Makes room for `n_bytes`, slack included; what was written before is lost. Memory is not cleared: of the room for
  /// the worst case only what is written costs anything.
  std::uint8_t* room_for(std::size_t n_bytes) {
    if (n_bytes > n_bytes_) {
      bytes_ = std::make_unique_for_overwrite<std::uint8_t[]>(n_bytes);
      n_bytes_ = n_bytes;
    }
    return bytes_.get();
  }

  /// The bits from `position` on, first bit lowest; at least 57 of them count.
  std::uint64_t bits_from(std::uint64_t position) const noexcept {
    std::uint64_t word;
    std::memcpy(&word, bytes_.get() + position / 8, sizeof word);
    return word >> (position % 8);
  }

 private:
  static constexpr std::size_t kUnused = 16;  ///< bytes to read from a plane that a slice does not need
  std::unique_ptr<std::uint8_t[]> bytes_ = std::make_unique<std::uint8_t[]>(kUnused);
  std::size_t n_bytes_ = kUnused;
};

/// The bits of a slice's body, sorted by kind. They are made in one go and then dealt out chunk by chunk. Keep one
/// object for many slices: it reuses its memory.
class SlicePlanes {
 public:
  void fill(const Slice& slice);

  BitPlane position;       ///< plane 0 of the weights' quotients
  BitPlane last_position;  ///< 1 where a position completes its weight; parallel to `position`
  BitPlane continuation;   ///< plane 1: one bit for each 1 of `position`
  BitPlane remainder;      ///< `remainder_bits` for each weight
  BitPlane run_unary;      ///< quotients of the runs: q ones and a zero
  BitPlane run_remainder;  ///< `run_remainder_bits` for each run
  unsigned remainder_bits = 0;
  unsigned run_remainder_bits = 0;
  std::uint64_t body_bits = 0;  ///< of all planes, filler included

 private:
  void fill_weights(const Slice& slice);
  void fill_runs(const Slice& slice);
};

/// Number of ones in each 12-bit number: the processors we are built for may lack the instruction.
inline constexpr auto kOnes = [] {
  std::array<std::uint8_t, 1u << kChunkWeights> table{};
  for (unsigned bits = 1; bits < table.size(); ++bits) {
    table[bits] = static_cast<std::uint8_t>(table[bits / 2] + bits % 2);
  }
  return table;
}();

/// Deals the planes of one slice out, chunk by chunk.
class ChunkDealer {
 public:
  ChunkDealer(const Slice& slice, const SlicePlanes& planes)
      : planes_(planes),
        n_weights_(std::ssize(slice.indices)),
        n_runs_(std::ssize(slice.runs)),
        run_bits_(chunk_run_bits(slice.run_code)),
        max_weights_(chunk_weights(slice.weight_code, slice.palette.index_bits())),
        uncompressed_(slice.weight_code.is_uncompressed()),
        run_mode_(slice.run_code.on()) {}

  /// Returns the number of passes that the decoder will make.
  template <class Writer>
  std::uint64_t deal(Writer& out) {
    auto burst = out.begin_burst(planes_.body_bits);
    const std::uint64_t n_passes = run_mode_ ? deal_all<true>(burst) : deal_all<false>(burst);
    out.end_burst(burst);
    return n_passes;
  }

 private:
  template <bool kRuns, class Writer>
  std::uint64_t deal_all(Writer& out) {
    std::uint64_t n_passes = 1;
    while (deal_chunk<kRuns>(out)) ++n_passes;
    return n_passes;
  }

  /// False for the pass that finds nothing to start any more; it still writes what the chunk before has left behind.
  template <bool kRuns, class Writer>
  bool deal_chunk(Writer& out) {
    const std::int64_t lead = kRuns ? weights_done_ - runs_done_ : 0;
    const bool weights = weights_done_ < n_weights_ && lead < kMaxWeightLead;
    const bool runs = kRuns && runs_done_ < n_runs_ && lead >= 0;
    const auto old_weights = static_cast<unsigned>(std::exchange(new_weights_, 0));
    const auto old_runs = static_cast<unsigned>(std::exchange(new_runs_, 0));
    Field field;
    const unsigned positions = weights ? take_positions(field) : 0;
    if (runs) take_runs(field);
    field.add(take(planes_.continuation, continuation_at_, kOnes[positions]), kOnes[positions]);
    put_with_remainders(out, field, old_weights * planes_.remainder_bits);
    if constexpr (kRuns) {
      const unsigned run_width = old_runs * planes_.run_remainder_bits;
      out.put(take(planes_.run_remainder, run_remainder_at_, run_width), run_width);
    }
    return weights || runs;
  }

  /// Bits on their way to the writer.
  struct Field {
    std::uint64_t bits = 0;
    unsigned width = 0;
    void add(std::uint64_t more, unsigned n_bits) noexcept {
      bits |= more << width;
      width += n_bits;
    }
  };

  /// Takes plane 0 and returns it; counts the weights that it completes.
  unsigned take_positions(Field& field) {
    if (uncompressed_) {
      new_weights_ = std::min(n_weights_ - weights_done_, max_weights_);
      weights_done_ += new_weights_;
      return 0;
    }
    new_weights_ = kOnes[low_bits(planes_.last_position.bits_from(position_at_), kChunkWeights)];
    weights_done_ += new_weights_;
    const std::uint64_t positions = take(planes_.position, position_at_, kChunkWeights);
    field.add(positions, kChunkWeights);
    return static_cast<unsigned>(positions);
  }

  void take_runs(Field& field) {
    const std::uint64_t unary = take(planes_.run_unary, run_at_, run_bits_);
    const std::int64_t ends = static_cast<std::int64_t>(run_bits_) - kOnes[unary];
    new_runs_ = std::min(n_runs_ - runs_done_, ends);  // zeros behind the last run are filler
    runs_done_ += new_runs_;
    field.add(unary, run_bits_);
  }

  /// Writes what a chunk begins with, at most 36 bits, and behind it `width` bits of remainders, at most 72.
  template <class Writer>
  void put_with_remainders(Writer& out, Field field, unsigned width) {
    static_assert(2 * kChunkWeights + kChunkRunBits + kFirstRemainders <= BitWriter::kMaxFieldBits);
    const unsigned first = std::min(width, kFirstRemainders);
    field.add(take(planes_.remainder, remainder_at_, first), first);
    out.put(field.bits, field.width);
    for (width -= first; width != 0;) {
      const unsigned step = std::min(width, kMoreRemainders);
      out.put(take(planes_.remainder, remainder_at_, step), step);
      width -= step;
    }
  }

  static constexpr unsigned kFirstRemainders = 20;
  static constexpr unsigned kMoreRemainders = 56;

  static std::uint64_t take(const BitPlane& plane, std::uint64_t& at, unsigned width) noexcept {
    const std::uint64_t bits = low_bits(plane.bits_from(at), width);
    at += width;
    return bits;
  }
  static std::uint64_t low_bits(std::uint64_t word, unsigned width) noexcept {
    return word & ((std::uint64_t{1} << width) - 1);
  }

  const SlicePlanes& planes_;
  const std::int64_t n_weights_, n_runs_;
  const unsigned run_bits_;
  const std::int64_t max_weights_;
  const bool uncompressed_, run_mode_;
  std::int64_t weights_done_ = 0, runs_done_ = 0;  ///< quotients complete
  std::int64_t new_weights_ = 0, new_runs_ = 0;    ///< completed in the chunk before: their remainders are due
  std::uint64_t position_at_ = 0, continuation_at_ = 0, remainder_at_ = 0, run_at_ = 0, run_remainder_at_ = 0;
};

template <class Writer>
void put_palette(Writer& out, const Palette& palette) {
  out.put(palette.direct_offset, 5);
  out.put(palette.size == 0 ? 0 : palette.size - 1, 5);
  out.put(palette.entry_bits - 2, 3);
  for (unsigned i = 0; i < palette.size; ++i) out.put(palette.entries[i], palette.entry_bits);
}

template <class Writer>
void put_slice_header(Writer& out, const Slice& slice) {
  const WeightCode code = slice.weight_code;
  out.put(slice.run_code.on() ? slice.run_code.divisor() : kNoRunsCode, 3);
  out.put(slice.indices.size() - 1, 15);
  out.put(code.is_uncompressed() ? kUncompressedCode : code.divisor(), 3);
  out.put(code.is_truncated() ? 1 : 0, 1);
  out.put(slice.sends_palette ? 1 : 0, 1);
  if (slice.sends_palette) put_palette(out, slice.palette);
}

/// Appends `slice` to `out` and returns the number of passes that the decoder will make. `planes` is scratch memory.
/// Requires: every index can be coded with slice.weight_code, and 1 <= indices <= kMaxSliceWeights.
template <class Writer>
std::uint64_t put_slice(Writer& out, const Slice& slice, SlicePlanes& planes) {
  put_slice_header(out, slice);
  planes.fill(slice);
  return ChunkDealer(slice, planes).deal(out);
}

/// Appends the end code and fills the stream up to whole words of the NPU.  [docs/weight-stream.md §7]
template <class Writer>
void put_end_of_stream(Writer& out) {
  constexpr std::uint64_t kAlignmentBits = 8 * kStreamAlignmentBytes;
  out.put(kEndOfStreamCode, 3);
  out.put_ones((kAlignmentBits - out.size_bits() % kAlignmentBits) % kAlignmentBits);
}

}  // namespace weightmill::mlw
