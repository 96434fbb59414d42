#pragma once

#include <cstddef>
#include <cstdint>

#include <weightmill/kernels/index_sums.h>

#include "codec.h"
#include "golomb_rice.h"
#include "slice.h"

namespace weightmill::mlw {

/// What the search for the smallest stream minimises: bits, in sixteenths, and the decoder's time as bits.
using Price = std::int64_t;
inline constexpr Price kBit = 16;
/// A code that cannot be used costs this or more; sums of several such prices fit easily.
inline constexpr Price kUnusable = Price{1} << 40;

/// How the search weighs speed, size and the decoder's time.
struct BestSettings {
  Forms forms;
  std::size_t block_weights;  ///< where pieces may begin: after every so many weights; at most kMaxSumWeights
  std::size_t min_zero_run;   ///< and around runs of so many zeros; at least 16
  Price position;             ///< of one of the 12 places that the decoder takes in a pass
  bool search_slices;         ///< look for the best place of each change of code, weight by weight

  /// A slice's header, half a chunk of filler, and the passes that it wastes: the last and half of the one before.
  Price slice_price() const noexcept { return (kSliceHeaderBits + kFillerBits) * kBit + kWastedPositions * position; }

  /// With zero runs on, a pass takes 12 places of weights and 12 bits of runs: each pays a half, for whichever there is
  /// more of decides.
  Price beside_runs() const noexcept { return position / 2; }
  Price run_bit() const noexcept { return position - position / 2; }

  BestSettings for_indices(bool with_runs) const noexcept {
    BestSettings settings = *this;
    if (with_runs) settings.position = beside_runs();
    return settings;
  }

  static constexpr Price kSliceHeaderBits = 23;
  static constexpr Price kPaletteHeaderBits = 13;
  static constexpr Price kFillerBits = 6;
  static constexpr Price kWastedPositions = 18;
};

/// Of all indices summed up in `sums` with a Golomb-Rice code, headers and filler aside.
constexpr Price indices_price(const IndexSums& sums, WeightCode code, Price position) noexcept {
  const unsigned d = code.divisor();
  if (!code.can_code(sums.largest)) return kUnusable;
  const Price unary = code.is_truncated() ? sums.above[d] : sums.quotients[d];
  const Price positions = sums.n + (code.is_truncated() ? 0 : sums.quotients[d + 1]);
  return kBit * (Price{sums.n} * (1 + d) + unary) + position * positions;
}

/// Of n indices of `bits` bits each.
constexpr Price uncompressed_price(std::uint64_t n, unsigned bits, Price position) noexcept {
  const Price places = static_cast<Price>(n) * (bits > 5 ? 3 : 2);  // 8 or 12 to a pass
  return static_cast<Price>(n) * bits * kBit + places * position / 2;
}

}  // namespace weightmill::mlw
