#pragma once

#include <string>
#include <vector>

#include <weightmill/model/quantized_conv.h>

namespace weightmill {

/// What a sound plan may differ in.
struct PlanTolerance {
  /// Relative, of a live lane's gain against what its scales ask for. The classic policy's rounded 7-bit multiplier
  /// needs 2^-7.
  double gain = 1e-12;
};

/// Holds a plan to the promises of its record: sizes, ranges of weights, shifts, multipliers and zero points, the gain
/// of each lane against its scales, no weights in dead lanes. Returns one sentence for each promise that is broken,
/// with the lane or channel; none for a sound plan.  [docs/quantization.md §4.9]
std::vector<std::string> verify_plan(const QuantizedConv& plan, const PlanTolerance& tolerance = {});

}  // namespace weightmill
