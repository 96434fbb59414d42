#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "geometry.h"
#include "programs.h"
#include "walk.h"

namespace weightmill {

/// Bytes [begin, end) of the read-only tensor.
struct Range {
  std::uint64_t begin = 0, end = 0;
  friend auto operator<=>(const Range&, const Range&) = default;
};

/// One weight stream in the read-only tensor. Program, word, number, opcode, core and region are those of its first
/// use.
struct Stream {
  std::uint64_t offset = 0, size = 0;
  bool is_fast = false;    ///< U85's fast format, no MLW stream
  bool is_sparse = false;  ///< U85, 2:4 sparse: an MLW stream with all its zeros
  WeightCount count;
  std::size_t program = 0, number = 0, n_uses = 0;
  std::uint32_t word = 0;
  Opcode opcode = Opcode::conv;
  unsigned core = 0, region = 0;

  std::uint64_t end() const { return offset + size; }
};

/// What the command streams of a compiled model say about its read-only tensor.
struct Analysis {
  std::vector<Program> programs;
  std::span<const std::uint8_t> read_only;
  std::vector<Stream> streams;  ///< by offset; they do not overlap
  /// Merged, by offset. A byte may be in several; a byte of a stream is in `copied` alone.
  std::vector<Range> scales, copied, constants;
  bool extents_known = true;  ///< false where a gather reads the tensor: then no byte counts as dead
  std::size_t n_operations = 0;

  std::span<const std::uint8_t> bytes_of(const Stream& stream) const {
    return read_only.subspan(stream.offset, stream.size);
  }
  /// The stream that starts at `offset`. Requires one there.
  const Stream& stream_at(std::uint64_t offset) const;
  /// Index of the first stream that ends behind `offset`.
  std::size_t first_stream_behind(std::uint64_t offset) const;
  bool touches_stream(std::uint64_t begin, std::uint64_t size) const;
  /// Whether the reference is read for sure: false for scales of a POOL or ELEMENTWISE that point into a stream.
  bool is_live(const Reference& reference) const;
  /// Bytes that the reference reads at most: its bound, or the tight one where the plain bound reaches into a stream.
  std::uint64_t bytes_read(const Reference& reference) const;
};

/// Follows every command stream.
/// Throws: bad_file or unsupported for anything that is not understood (names the operator and the word).
Analysis analyze(const NpuPrograms& programs);

/// The 16-byte granules that are zero and that nothing reads, as merged ranges.
std::vector<Range> dead_granules(const Analysis& analysis);

/// How the read-only tensor's bytes divide: each byte counts in the first class that claims it.
struct Coverage {
  std::uint64_t weights = 0, scales = 0, copied = 0, constants = 0;
  std::uint64_t rest = 0;          ///< nothing reads them
  std::uint64_t rest_nonzero = 0;  ///< of these, not 0
  std::uint64_t dead = 0;          ///< of these, in whole 16-byte granules of zeros
};
Coverage coverage_of(const Analysis& analysis);

}  // namespace weightmill
