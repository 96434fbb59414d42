#pragma once

#include <cstdint>
#include <string_view>

#include <weightmill/kernels/rounding_rules.h>

#include "layer.h"

namespace weightmill {

/// C of layer.weight_shape. Throws: bad_request if the shape is not of rank 5 or 6, is empty, or does not hold
/// layer.weight.size() values.
std::size_t channels_of(const IntegerLayer& layer);

/// Limits of an output type, as OutputCodes without activation or zero point. Throws: unsupported for a type that is
/// none of i8, u8, i16, i32 (names `where`).
OutputCodes type_limits(std::string_view where, DType dtype);

/// Everything that IntegerLayer promises. Throws: as Simulator's constructor.
void check_layer(const IntegerLayer& layer);

/// The largest |accumulator| that any input can make, over all channels; at least 0, below 2^100.
Int128 accumulator_bound(const IntegerLayer& layer);

}  // namespace weightmill
