#include "openvino_steps.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include <weightmill/base/error.h>

#include "check_layer.h"

namespace weightmill {
namespace {

/// The step that quantizes to uint8 what lies between two reals: OpenVINO's FakeQuantize of 256 levels.
FloatStep fake_quantize_step(float low, float high) noexcept {
  const float width = high - low;
  return {255.0F / width, -low * 255.0F / width};
}

struct RealLimits {
  float low, high;
};

/// The reals of the first and the last code.
RealLimits output_limits(const IntegerLayer& layer, float scale) noexcept {
  const auto zero_point = static_cast<float>(layer.output.zero_point - layer.output.type_low);
  return {(0.0F - zero_point) * scale, (255.0F - zero_point) * scale};
}

/// int8 codes run as uint8, code + 128.
std::int64_t unsigned_input_zero(const IntegerLayer& layer) noexcept {
  return layer.input_zero_point + (layer.input_dtype == DType::i8 ? 128 : 0);
}

std::vector<std::int64_t> weight_sums(const IntegerLayer& layer, std::size_t n_channels) {
  std::vector<std::int64_t> sum(n_channels);
  for (std::size_t i = 0; i < layer.weight.size(); ++i) sum[i % n_channels] += layer.weight[i];
  return sum;
}

/// The accumulator in real units with its bias, if any; then the output is quantized.
void set_plain_steps(IntegerLayer& layer, std::span<const float> scale, const FloatStep& quantize) {
  for (std::size_t c = 0; c < scale.size(); ++c) {
    layer.gain.push_back(scale[c]);
    layer.offset.push_back(layer.bias.empty() ? 0.0F : static_cast<float>(layer.bias[c]) * scale[c]);
  }
  layer.last = quantize;
  layer.bias.clear();
}

/// The bias is added in output steps.
void set_dense_steps_with_bias(IntegerLayer& layer, std::span<const float> scale, const FloatStep& quantize) {
  for (std::size_t c = 0; c < scale.size(); ++c) {
    const float bias = static_cast<float>(layer.bias[c]) * scale[c];
    layer.gain.push_back(scale[c] * quantize.gain);
    layer.offset.push_back(bias * quantize.gain + quantize.offset);
  }
  layer.bias.clear();
}

/// One step for all channels.
void set_fused_step(IntegerLayer& layer, std::size_t n_channels, const FloatStep& step) {
  layer.gain.assign(n_channels, 1.0F);
  layer.offset.assign(n_channels, 0.0F);
  layer.last = step;
}

/// One bias and one scale for all channels go into the limits of the output.
void set_step_with_one_bias(IntegerLayer& layer, std::span<const float> scale, const RealLimits& limits) {
  const float bias = static_cast<float>(layer.bias[0]) * scale[0];
  layer.bias.clear();
  set_fused_step(layer, scale.size(),
                 fake_quantize_step((limits.low - bias) / scale[0], (limits.high - bias) / scale[0]));
}

/// Without a bias the graph is simplified: the output's limits are divided by the scale of the accumulator. A dense
/// layer's input zero point goes into them as well, so that its accumulator is the sum of plain codes.
void set_steps_without_bias(IntegerLayer& layer, std::span<const float> scale, bool one_scale,
                            const RealLimits& limits) {
  const std::int64_t input_zero = unsigned_input_zero(layer);
  const bool shifted = layer.rounding == Rounding::openvino_dense && input_zero != 0;
  layer.bias.clear();
  if (shifted) layer.bias = weight_sums(layer, scale.size());
  std::vector<FloatStep> steps;
  for (std::size_t c = 0; c < scale.size(); ++c) {
    if (shifted) layer.bias[c] *= input_zero;
    const float shift = shifted ? static_cast<float>(layer.bias[c]) : 0.0F;
    steps.push_back(fake_quantize_step(limits.low / scale[c] + shift, limits.high / scale[c] + shift));
  }
  const bool one_sum = std::ranges::all_of(layer.bias, [&](std::int64_t b) { return b == layer.bias[0]; });
  if (one_scale && one_sum) return set_fused_step(layer, scale.size(), steps[0]);
  for (const FloatStep& step : steps) {
    layer.gain.push_back(step.gain);
    layer.offset.push_back(shifted ? step.offset : steps[0].offset);  // the zero point, one for all channels
  }
}

}  // namespace

void set_openvino_steps(IntegerLayer& layer, float input_scale, std::span<const float> weight_scale,
                        float output_scale) {
  if (size_bits(layer.output_dtype) != 8 || size_bits(layer.input_dtype) != 8) {
    fail(ErrorCode::unsupported, layer.name, fmt::format("'{}' takes and makes 8-bit codes", name_of(layer.rounding)));
  }
  layer.gain.clear(), layer.offset.clear();
  layer.last = {};
  const std::size_t n_channels = channels_of(layer);
  std::vector<float> scale(n_channels);
  for (std::size_t c = 0; c < n_channels; ++c) scale[c] = input_scale * weight_scale[weight_scale.size() == 1 ? 0 : c];
  const bool one_scale = std::ranges::all_of(weight_scale, [&](float s) { return s == weight_scale[0]; });
  const bool one_bias = std::ranges::all_of(layer.bias, [&](std::int64_t b) { return b == layer.bias[0]; });
  const bool has_bias = std::ranges::any_of(layer.bias, [](std::int64_t b) { return b != 0; });
  const RealLimits limits = output_limits(layer, output_scale);
  const bool dense = layer.rounding == Rounding::openvino_dense;
  const bool clamped = layer.output.low > layer.output.type_low;  // by an activation, which keeps the graph as it was
  const FloatStep quantize = fake_quantize_step(limits.low, limits.high);
  if (clamped && (dense || has_bias)) {
    set_plain_steps(layer, scale, quantize);
  } else if (has_bias && dense) {
    set_dense_steps_with_bias(layer, scale, quantize);
  } else if (has_bias && one_bias && one_scale) {
    set_step_with_one_bias(layer, scale, limits);
  } else if (has_bias) {
    set_plain_steps(layer, scale, quantize);
  } else {
    set_steps_without_bias(layer, scale, one_scale, limits);
  }
  const auto finite = [](float x) { return std::isfinite(x); };
  if (!std::ranges::all_of(layer.gain, finite) || !std::ranges::all_of(layer.offset, finite) ||
      !finite(layer.last.gain) || !finite(layer.last.offset)) {
    fail(ErrorCode::bad_request, layer.name, "the scales' quotients leave float32");
  }
}

}  // namespace weightmill
