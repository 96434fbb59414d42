#pragma once

#include <cstdint>

#include "slice.h"

namespace weightmill::mlw {

/// What a slice or a whole stream takes.
struct Cost {
  std::uint64_t bits = 0;
  std::uint64_t passes = 0;  ///< of the decoding loop, as StreamStatistics counts them
};

/// Of what put_slice() writes for `slice`, header, palette and filler included, without making it.
/// The order of chunks costs no bits, so that each plane is rounded up to whole chunks by itself.
Cost slice_cost(const Slice& slice) noexcept;

/// A BitCounter that takes the cost of a slice as slice_cost() knows it, without dealing its chunks out.
class CostMeter : public BitCounter {};

inline std::uint64_t put_slice(CostMeter& out, const Slice& slice, SlicePlanes&) noexcept {
  const Cost cost = slice_cost(slice);
  out.put_ones(cost.bits);
  return cost.passes;
}

}  // namespace weightmill::mlw
