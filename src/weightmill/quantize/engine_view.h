#pragma once

#include <cstdint>
#include <vector>

#include <weightmill/model/quantized_conv.h>

namespace weightmill {

/// A plan in the words of TFLite and ONNX:  real = (q - zero_point) * scale. Engines rebuild their own multiplier from
/// the scales; the weights are the plan's.
struct EngineView {
  float input_scale = 1;
  float output_scale = 1;
  std::vector<float> weight_scale;  ///< C; > 0, 1 / steps_per_unit; output_scale / input_scale for a dead channel
  std::vector<std::int64_t> bias;   ///< C; steps of input_scale * weight_scale; zero points not folded in
};

/// What to export. `snap_gain`: for modes without a multiplier, moves each weight scale by a few units in its last
/// place so that float32(float32(input_scale * weight_scale) / output_scale) is the plan's power of two exactly, where
/// one such scale exists; engines with a float32 gain then shift exactly as planned.
/// A 7-bit multiplier and the lost input bit of the int16 convolution do not survive: engines are more exact than they.
/// Source: docs/quantization.md §11.
EngineView engine_view(const QuantizedConv& plan, bool snap_gain = true);

}  // namespace weightmill
