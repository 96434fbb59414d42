#include "slice_decoder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <weightmill/kernels/bit_appender.h>
#include <weightmill/kernels/bit_planes.h>

#include "quotient_tables.h"
#include "refuse_stream.h"
#include "slice.h"

namespace weightmill::mlw {
namespace {

/// Symbols that a chunk may complete behind the last one: its filler.
constexpr std::size_t kFillerSymbols = 2 * kChunkWeights;

/// Where a chunk reader leaves what it finds.
struct SymbolSinks {
  std::uint16_t* quotients;
  std::uint32_t* run_quotients;
  std::uint8_t* remainders;
  std::uint8_t* run_remainders;
};

/// Takes the chunks of one slice apart.  [docs/weight-stream.md §6]
/// Filler is counted like symbols: it comes when one side is complete, and the other's conditions hold either way.
class ChunkReader {
 public:
  ChunkReader(BitReader in, const SliceLayout& layout, const SymbolSinks& sinks)
      : in_(std::move(in)),
        quotients_(sinks.quotients),
        runs_(sinks.run_quotients),
        remainders_(sinks.remainders),
        run_remainders_(sinks.run_remainders),
        n_weights_(static_cast<std::int64_t>(layout.n_weights)),
        n_runs_(static_cast<std::int64_t>(layout.n_runs)),
        uncompressed_(layout.weight_code.is_uncompressed()),
        remainder_bits_(uncompressed_ ? layout.index_bits : layout.weight_code.divisor()),
        chunk_weights_(chunk_weights(layout.weight_code, layout.index_bits)),
        run_bits_(chunk_run_bits(layout.run_code)),
        run_remainder_bits_(layout.run_code.on() ? layout.run_code.divisor() : 0),
        max_quotient_(kMaxCodeValue >> layout.weight_code.divisor()),
        max_run_(layout.max_run),
        table_(kQuotientTables[layout.weight_code.is_truncated() ? 1 : 0]) {}

  /// Reads all chunks; returns the number of passes.
  template <bool kZeroRuns>
  std::uint64_t take_all() {
    std::uint64_t n_passes = 1;
    while (take_chunk<kZeroRuns>()) ++n_passes;
    remainders_.flush();
    run_remainders_.flush();
    return n_passes;
  }

  BitReader&& reader() && noexcept { return std::move(in_); }

 private:
  /// False for the pass that finds nothing to start any more.
  template <bool kZeroRuns>
  bool take_chunk() {
    const std::int64_t lead = kZeroRuns ? weights_done_ - runs_done_ : 0;
    const bool weights = weights_done_ < n_weights_ && lead < kMaxWeightLead;
    const bool runs = kZeroRuns && runs_done_ < n_runs_ && lead >= 0;
    const std::int64_t old_weights = std::min(weights_done_, n_weights_);
    const std::int64_t old_runs = std::min(runs_done_, n_runs_);
    const auto positions = static_cast<unsigned>(weights && !uncompressed_ ? in_.take(kChunkWeights) : 0);
    if (runs) take_run_quotients();
    if (weights && uncompressed_) weights_done_ = std::min(weights_done_ + chunk_weights_, n_weights_);
    if (weights && !uncompressed_) take_quotients(positions);
    take_remainders(old_weights, old_runs);
    if (in_.overrun()) refuse_stream(in_.position_bits(), "ends inside a slice");
    return weights || runs;
  }

  void take_quotients(unsigned positions) {
    auto continuation = static_cast<unsigned>(in_.take(kOnes[positions]));
    for (unsigned i = 0; i < kChunkWeights; i += 4) {
      const QuotientStep& step = table_[(positions >> i & 15) | (continuation & 15) << 4];
      const std::uint64_t complete = step.quotients + begun_;
      std::memcpy(quotients_ + weights_done_, &complete, sizeof complete);
      weights_done_ += step.n_complete;
      begun_ = (begun_ & step.kept) + step.begun;
      continuation >>= step.n_ones;
    }
    if (begun_ > max_quotient_ && weights_done_ < n_weights_) {
      refuse_stream(in_.position_bits(), "an index is beyond 511");
    }
  }

  void take_run_quotients() {
    const auto unary = static_cast<unsigned>(in_.take(run_bits_));
    for (unsigned i = 0; i < run_bits_; i += 4) {
      const RunStep& step = kRunTable[unary >> i & 15];
      std::memcpy(runs_ + runs_done_, step.quotients.data(), sizeof step.quotients);
      runs_[runs_done_] += run_begun_;
      runs_done_ += step.n_complete;
      run_begun_ = (run_begun_ & step.kept) + step.begun;
    }
    if (run_begun_ > max_run_ >> run_remainder_bits_) refuse_run();
  }

  [[noreturn]] void refuse_run() const {
    refuse_stream(in_.position_bits(), fmt::format("a zero run has more than {} weights", max_run_));
  }

  /// Of the symbols that were complete before this chunk.
  void take_remainders(std::int64_t old_weights, std::int64_t old_runs) {
    copy_bits(static_cast<unsigned>(old_weights - std::exchange(weights_read_, old_weights)) * remainder_bits_,
              remainders_);
    copy_bits(static_cast<unsigned>(old_runs - std::exchange(runs_read_, old_runs)) * run_remainder_bits_,
              run_remainders_);
  }

  void copy_bits(unsigned width, BitAppender& out) noexcept {
    constexpr unsigned kStep = BitReader::kMaxFieldBits;
    if (width > kStep) [[unlikely]] {
      out.append(in_.take(kStep), kStep);
      width -= kStep;
    }
    out.append(in_.take(width), width);
  }

  BitReader in_;
  std::uint16_t* quotients_;
  std::uint32_t* runs_;
  BitAppender remainders_, run_remainders_;
  const std::int64_t n_weights_, n_runs_;
  const bool uncompressed_;
  const unsigned remainder_bits_;
  const std::int64_t chunk_weights_;
  const unsigned run_bits_, run_remainder_bits_;
  const std::uint64_t max_quotient_;
  const std::uint32_t max_run_;
  const QuotientTable& table_;
  std::int64_t weights_done_ = 0, runs_done_ = 0;  ///< quotients complete
  std::int64_t weights_read_ = 0, runs_read_ = 0;  ///< remainders read
  std::uint64_t begun_ = 0;                        ///< part of the quotient that is not complete yet
  std::uint32_t run_begun_ = 0;
};

}  // namespace

std::uint64_t SliceDecoder::take_body(BitReader& in, const SliceLayout& layout) {
  make_room(layout);
  ChunkReader reader(std::move(in), layout,
                     {indices_.data(), runs_.data(), remainders_.data(), run_remainders_.data()});
  const std::uint64_t n_passes = layout.run_code.on() ? reader.take_all<true>() : reader.take_all<false>();
  in = std::move(reader).reader();
  finish_indices(layout, in.position_bits());
  if (layout.run_code.on()) finish_runs(layout.run_code.divisor());
  return n_passes;
}

void SliceDecoder::make_room(const SliceLayout& layout) {
  n_weights_ = layout.n_weights;
  n_runs_ = layout.n_runs;
  constexpr unsigned kMaxIndexBits = 9;
  const auto grow = [](auto& buffer, std::size_t size) {
    if (buffer.size() < size) buffer.resize(size);
  };
  grow(indices_, n_weights_ + kFillerSymbols);
  grow(runs_, n_runs_ + kFillerSymbols);
  grow(remainders_, n_weights_ * kMaxIndexBits / 8 + 2 * kBitSlack);
  grow(run_remainders_, n_runs_ * kMaxIndexBits / 8 + 2 * kBitSlack);
}

void SliceDecoder::finish_indices(const SliceLayout& layout, std::uint64_t position_bits) {
  const bool uncompressed = layout.weight_code.is_uncompressed();
  const std::span indices(indices_.data(), n_weights_);
  if (uncompressed) std::fill(indices.begin(), indices.end(), std::uint16_t{0});
  const unsigned width = uncompressed ? layout.index_bits : layout.weight_code.divisor();
  largest_index_ = join_low_bits(indices, width, remainders_.data());
  if (largest_index_ > kMaxCodeValue) refuse_stream(position_bits, "an index is beyond 511");
}

void SliceDecoder::finish_runs(unsigned divisor) noexcept {
  if (divisor == 0) return;
  for (std::size_t i = 0; i < n_runs_; ++i) {
    std::uint32_t word;
    std::memcpy(&word, run_remainders_.data() + i * divisor / 8, sizeof word);
    runs_[i] = runs_[i] << divisor | (word >> (i * divisor % 8) & ((1u << divisor) - 1));
  }
}

}  // namespace weightmill::mlw
