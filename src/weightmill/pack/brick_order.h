#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <weightmill/model/packed.h>
#include "weight_volume.h"

namespace weightmill {

/// The order in which an Ethos-U's weight decoder hands out weights ("brick order"), exactly.  [docs/brick-order.md]
///
/// `geometry` says for which NPU, traversal and block; the volume has the output channels of one depth slice and, on
/// U55 and U65, of one core. Where the order asks for a channel or kernel element that does not exist, it has a zero.
/// All functions throw: bad_request if an extent, block depth, sub-kernel, core or traversal makes no sense (names it);
/// unsupported if the order would have more than 2^30 entries.

/// Number of entries, padding included.
std::uint64_t ordered_count(const std::array<int, 4>& ohwi, const BrickGeometry& geometry);

/// The weights in order, zero point subtracted, each in [-255 - 32768, 32767 + 255] cut to int16: whether they fit a
/// stream is checked by the encoder. The second form reuses `out`'s memory.
std::vector<std::int16_t> brick_order(const WeightVolume& volume, const BrickGeometry& geometry);
void brick_order(const WeightVolume& volume, const BrickGeometry& geometry, std::vector<std::int16_t>& out);

/// The inverse mapping: entry k says which weight the k-th ordered one is, as ((o * H + y) * W + x) * I + i, or -1 for
/// padding.
std::vector<std::int32_t> brick_indices(const std::array<int, 4>& ohwi, const BrickGeometry& geometry);

/// U85's fast format has one stream for all cores: their orders, interleaved in blocks. `geometry.core` is ignored.
std::uint64_t fast_ordered_count(const std::array<int, 4>& ohwi, const BrickGeometry& geometry);
std::vector<std::int16_t> fast_order(const WeightVolume& volume, const BrickGeometry& geometry);
std::vector<std::int32_t> fast_indices(const std::array<int, 4>& ohwi, const BrickGeometry& geometry);

}  // namespace weightmill
