#pragma once

#include <string>
#include <vector>

#include <weightmill/model/quantized_conv.h>

namespace weightmill {

/// Holds a plan to the promises of its record: sizes, ranges of weights, shifts, multipliers and zero points, the gain
/// of each lane against its scales (1e-12 relative; 2^-7 where the plan says that it is not exact), no weights in dead
/// lanes. Returns one sentence for each promise that is broken,
/// with the lane or channel; none for a sound plan.  [docs/quantization.md §4.9]
std::vector<std::string> verify_plan(const QuantizedConv& plan);

}  // namespace weightmill
