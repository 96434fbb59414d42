#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bit_reader.h"
#include "golomb_rice.h"

namespace weightmill::mlw {

/// What a slice's body is read with, all of it from the slice's header and the palette in force.
struct SliceLayout {
  std::size_t n_weights;  ///< 1 to 32768
  std::size_t n_runs;     ///< 0 where zero-run mode is off
  WeightCode weight_code;
  RunCode run_code;
  unsigned index_bits;    ///< of an index in uncompressed mode
  std::uint32_t max_run;  ///< below 2^31; a longer run is refused before it ends
};

/// Reads slices' bodies. Keep one object for many slices: it reuses its memory.
class SliceDecoder {
 public:
  /// Reads a body; returns the number of passes over its chunks.
  /// Throws: bad_stream if the body ends too early, an index is beyond 511 or a run beyond `max_run` (names the bit).
  std::uint64_t take_body(BitReader& in, const SliceLayout& layout);

  /// Of the body read last.
  std::span<const std::uint16_t> indices() const noexcept { return {indices_.data(), n_weights_}; }
  std::uint16_t largest_index() const noexcept { return largest_index_; }
  std::span<const std::uint32_t> runs() const noexcept { return {runs_.data(), n_runs_}; }

 private:
  void make_room(const SliceLayout& layout);
  void finish_indices(const SliceLayout& layout, std::uint64_t position_bits);
  void finish_runs(unsigned divisor) noexcept;

  std::vector<std::uint16_t> indices_;            ///< quotients at first
  std::vector<std::uint32_t> runs_;               ///< likewise
  std::vector<std::uint8_t> remainders_;          ///< of the indices, one behind the other
  std::vector<std::uint8_t> run_remainders_;
  std::size_t n_weights_ = 0;
  std::size_t n_runs_ = 0;
  std::uint16_t largest_index_ = 0;
};

}  // namespace weightmill::mlw
