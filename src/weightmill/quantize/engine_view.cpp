#include "engine_view.h"

#include <cmath>
#include <limits>

#include <weightmill/base/rounding.h>

namespace weightmill {
namespace {

constexpr int kMaxSteps = 4;  ///< in the last place: a quotient of two float32 roundings moves by no more than that

float gain_of(const EngineView& view, float weight_scale) {
  const float product = view.input_scale * weight_scale;
  return product / view.output_scale;
}

/// The scale nearest to `scale` that gives `gain` exactly, or `scale` where there is none near.
float snapped(const EngineView& view, float scale, float gain) {
  float up = scale;
  float down = scale;
  for (int i = 0; i <= kMaxSteps; ++i) {
    if (gain_of(view, up) == gain) return up;
    if (gain_of(view, down) == gain) return down;
    up = std::nextafter(up, std::numeric_limits<float>::infinity());
    down = std::nextafter(down, 0.0F);
  }
  return scale;
}

float weight_scale_of(const QuantizedConv& plan, const EngineView& view, std::size_t lane, bool snap_gain) {
  const double steps = plan.weight_steps_per_unit[lane];
  if (steps == 0) return static_cast<float>(plan.input.steps_per_unit / plan.output.steps_per_unit);
  const auto scale = static_cast<float>(1 / steps);
  const bool pow2 = plan.mode != ConvMode::mult7_i8 && plan.mode != ConvMode::mult7_i16;
  if (!snap_gain || !pow2) return scale;
  const int shift = plan.gain[lane].shift + plan.intrinsic_shift[lane];
  return snapped(view, scale, std::ldexp(1.0F, -shift));
}

std::int64_t bias_steps(double real, double unit) {
  constexpr double kMost = 0x1p62;
  const double steps = real == 0 ? 0.0 : round_half_even(real / unit);
  return static_cast<std::int64_t>(std::min(std::max(steps, -kMost), kMost));
}

}  // namespace

EngineView engine_view(const QuantizedConv& plan, bool snap_gain) {
  EngineView view;
  view.input_scale = static_cast<float>(1 / plan.input.steps_per_unit);
  view.output_scale = static_cast<float>(1 / plan.output.steps_per_unit);
  const bool mult31 = plan.requant == Requant::mult31;
  for (std::size_t c = 0; c < plan.bias.size(); ++c) {
    const std::size_t lane = plan.per_channel ? c : 0;
    view.weight_scale.push_back(mult31 ? plan.weight_scale[c] : weight_scale_of(plan, view, lane, snap_gain));
    const double unit = static_cast<double>(view.weight_scale[c]) / plan.input.steps_per_unit;
    view.bias.push_back(mult31 ? plan.bias[c] : bias_steps(plan.real_bias[c], unit));
  }
  return view;
}

}  // namespace weightmill
