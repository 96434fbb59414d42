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
};

/// The symbols of one slice.
struct SliceSymbols {
  std::vector<std::uint16_t> indices;
  std::vector<std::uint64_t> runs;
};

/// Reads a slice's body into `symbols`; returns the number of passes over its chunks.
/// Throws: bad_stream if the body ends too early or an index is beyond 511 (names the bit).
std::uint64_t take_slice_body(BitReader& in, const SliceLayout& layout, SliceSymbols& symbols);

}  // namespace weightmill::mlw
