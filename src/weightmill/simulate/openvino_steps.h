#pragma once

#include <span>

#include <weightmill/simulate/layer.h>

namespace weightmill {

/// Fills gain, offset and last of a layer with a rule of OpenVINO's from scales that are finite and positive (real
/// units per step; `weight_scale`: one, or one for each output channel). Moves the bias into the offsets.
/// Throws: as set_scales.  Source: docs/rounding.md §2; measured.
void set_openvino_steps(IntegerLayer& layer, float input_scale, std::span<const float> weight_scale,
                        float output_scale);

}  // namespace weightmill
