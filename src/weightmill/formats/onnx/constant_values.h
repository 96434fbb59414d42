#pragma once

#include <cstdint>
#include <span>

#include "onnx.h"

namespace weightmill {

/// The stored element with this number, before any Cast.
float stored_float(const OnnxConstant& constant, std::uint64_t index);

/// Rounds elements to the types of the Casts between the stored tensor and its reader.
void apply_casts(const OnnxConstant& constant, std::span<float> values);

}  // namespace weightmill
