#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <weightmill/model/packed.h>

namespace weightmill::verify {

/// A position of a stream that stands for no weight.
inline constexpr std::int64_t kPadding = -1;

/// For each position of one core's stream, in order, which weight of its volume the NPU takes there: the index into
/// the row-major OHWI volume of `ohwi`, or kPadding.
///
/// `ohwi` is the volume of this stream's channels alone. `format` matters for U85: a fast stream holds the
/// weights of all cores, dealt block by block.
/// Written as one loop per line of docs/brick-order.md, for reading rather than for speed.
/// Requires: geometry and ohwi as checked by geometry_problem().
std::vector<std::int64_t> walk_order(const BrickGeometry& geometry, StreamFormat format,
                                     const std::array<int, 4>& ohwi);

/// What makes a geometry impossible to walk, e.g. "ofm_block_depth is 0"; empty if nothing does.
std::string geometry_problem(const BrickGeometry& geometry, const std::array<int, 4>& ohwi);

}  // namespace weightmill::verify
