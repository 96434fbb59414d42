#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <weightmill/model/quantized_conv.h>

namespace weightmill {

/// How well values agree with a reference.  [docs/quantization.md §10]
struct Agreement {
  double sqnr_db = 0;          ///< 20 log10(|reference| / |reference - value|); infinite where they are equal
  double max_error_steps = 0;  ///< largest |reference - value|, in steps of the value's grid
  double cosine = 1;           ///< of the two as vectors; 1 where both are 0, 0 where one is
  std::uint64_t count = 0;     ///< values compared
};

/// Compares integer codes on `grid` with a float reference of the same length, as a whole.
/// Throws: bad_request if the lengths differ or the grid has no positive, finite scale.
Agreement agreement(std::span<const float> reference, std::span<const std::int32_t> codes, const Grid& grid);

/// The same for each channel; the channel is the last, fastest axis.
/// Throws: as agreement; bad_request if n_channels is 0 or does not divide the length.
std::vector<Agreement> channel_agreement(std::span<const float> reference, std::span<const std::int32_t> codes,
                                         const Grid& grid, std::size_t n_channels);

}  // namespace weightmill
