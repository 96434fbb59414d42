#pragma once

#include "layer.h"

namespace weightmill {

/// The plan for engines with a 31-bit multiplier and shift of their own making: float32 scales, zero points apart from
/// the bias. One pass that cannot fail.  [docs/quantization.md §5]
/// Throws: bad_request, E_ZERO_OUTPUT.
QuantizedConv plan_mult31(const Layer& layer);

}  // namespace weightmill
