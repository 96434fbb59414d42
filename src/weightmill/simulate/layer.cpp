#include "layer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/rounding.h>

#include "check_layer.h"
#include "openvino_steps.h"

namespace weightmill {
namespace {

bool made_from_scales(Rounding rule) {
  switch (rule) {
    case Rounding::folded:
    case Rounding::after_shift:
    case Rounding::ethos_u_double:
    case Rounding::ethos_u_natural:
      return false;
    default:
      return true;
  }
}

void check_scale(const IntegerLayer& layer, std::string_view what, float scale) {
  if (std::isfinite(scale) && scale > 0) return;
  fail(ErrorCode::bad_request, layer.name,
       fmt::format("the {} scale is {}; it must be finite and positive", what, scale));
}

/// `lanes` as one value for each of n_channels: a single one stands for all.
template <class To, class From, class Of>
std::vector<To> for_each_channel(const std::vector<From>& lanes, std::size_t n_channels, const Of& of) {
  std::vector<To> result(n_channels);
  for (std::size_t c = 0; c < n_channels; ++c) result[c] = static_cast<To>(of(lanes[lanes.size() == 1 ? 0 : c]));
  return result;
}

/// Multipliers, shifts and intrinsic shifts of a plan that has its own gains.
void take_gains(IntegerLayer& layer, const QuantizedConv& plan, std::size_t n_channels) {
  const auto fits = [&](std::size_t count) { return count == n_channels || count == 1; };
  if (!fits(plan.gain.size()) || (!plan.intrinsic_shift.empty() && !fits(plan.intrinsic_shift.size()))) {
    fail(ErrorCode::bad_request, layer.name,
         fmt::format("the plan has {} gains and {} intrinsic shifts for {} output channels", plan.gain.size(),
                     plan.intrinsic_shift.size(), n_channels));
  }
  layer.shift = for_each_channel<std::int32_t>(plan.gain, n_channels, [](const FixedPoint& g) { return g.shift; });
  layer.multiplier =
      for_each_channel<std::int64_t>(plan.gain, n_channels, [](const FixedPoint& g) { return g.multiplier; });
  if (plan.input_dtype == DType::i16 && !plan.intrinsic_shift.empty()) {
    layer.intrinsic_shift =
        for_each_channel<std::uint8_t>(plan.intrinsic_shift, n_channels, [](std::uint8_t h) { return h; });
  }
}

float scale_of(const Grid& grid) { return static_cast<float>(1.0 / grid.steps_per_unit); }

/// Everything of a plan but its gains and output codes.
IntegerLayer weights_of(const QuantizedConv& plan, const ConvGeometry& geometry) {
  IntegerLayer layer;
  layer.name = "planned convolution";
  layer.geometry = geometry;
  layer.weight_shape = plan.weight_shape;
  layer.weight.assign(plan.weight.begin(), plan.weight.end());
  layer.bias.assign(plan.bias.begin(), plan.bias.end());
  layer.bias_form = plan.requant == Requant::mult31 ? BiasForm::plain : BiasForm::folded;
  layer.input_dtype = plan.input_dtype;
  layer.input_zero_point = plan.input.zero_point;
  return layer;
}

void append_gain(IntegerLayer& layer, float input_scale, float weight_scale, float output_scale) {
  const double gain = double{input_scale} * double{weight_scale} / double{output_scale};
  if (layer.rounding == Rounding::float_gain) return layer.gain.push_back(input_scale * weight_scale / output_scale);
  if (layer.rounding == Rounding::double_gain) return layer.wide_gain.push_back(gain);
  const FixedPoint fixed = quantize_multiplier(gain);
  layer.multiplier.push_back(fixed.multiplier);
  layer.shift.push_back(fixed.shift);
}

}  // namespace

void set_output(IntegerLayer& layer, DType dtype, std::int64_t zero_point) {
  layer.output_dtype = dtype;
  layer.output = type_limits(layer.name, dtype);
  if (zero_point < layer.output.low || zero_point > layer.output.high) {
    fail(ErrorCode::bad_request, layer.name,
         fmt::format("output zero point {} is no code of {}", zero_point, name_of(dtype)));
  }
  layer.output.zero_point = static_cast<std::int32_t>(zero_point);
}

FixedPoint quantize_multiplier(double gain) noexcept {
  int exponent = 0;
  const double mantissa = std::frexp(gain, &exponent);
  auto multiplier = static_cast<std::int64_t>(round_half_away(std::ldexp(mantissa, 31)));
  if (multiplier == std::int64_t{1} << 31) {
    multiplier /= 2;
    ++exponent;
  }
  if (exponent < -31 || multiplier == 0) return {0, 31};
  if (exponent > 30) return {std::numeric_limits<std::int32_t>::max(), 1};
  return {multiplier, 31 - exponent};
}

void set_scales(IntegerLayer& layer, float input_scale, std::span<const float> weight_scale, float output_scale) {
  if (!made_from_scales(layer.rounding)) {
    fail(ErrorCode::bad_option, "rounding",
         fmt::format("'{}' is not made from three scales; it needs a multiplier and shift of its own",
                     name_of(layer.rounding)));
  }
  const std::size_t n_channels = channels_of(layer);
  if (weight_scale.size() != 1 && weight_scale.size() != n_channels) {
    fail(ErrorCode::bad_request, layer.name,
         fmt::format("{} weight scales for {} output channels; wanted 1 or {}", weight_scale.size(), n_channels,
                     n_channels));
  }
  check_scale(layer, "input", input_scale);
  check_scale(layer, "output", output_scale);
  layer.multiplier.clear(), layer.shift.clear(), layer.gain.clear(), layer.wide_gain.clear();
  for (const float scale : weight_scale) check_scale(layer, "weight", scale);
  if (is_openvino(layer.rounding)) return set_openvino_steps(layer, input_scale, weight_scale, output_scale);
  for (std::size_t c = 0; c < n_channels; ++c) {
    append_gain(layer, input_scale, weight_scale[weight_scale.size() == 1 ? 0 : c], output_scale);
  }
}

ActivationCodes activation_codes(LimitRounding rounding, float output_scale, std::int64_t zero_point) noexcept {
  const auto code = [&](float limit) {
    const float steps = std::clamp(limit / output_scale, -0x1p31F, 0x1p31F);
    if (rounding == LimitRounding::half_away) return zero_point + static_cast<std::int64_t>(round_half_away(steps));
    return static_cast<std::int64_t>(round_half_even(steps + static_cast<float>(zero_point)));
  };
  return {zero_point, code(-1.0F), code(1.0F), code(6.0F)};
}

void set_activation(IntegerLayer& layer, Activation activation, const ActivationCodes& codes) {
  OutputCodes& output = layer.output;
  const auto clamp_low = [&](std::int64_t low) { output.low = clamp_to(low, output.low, output.high); };
  const auto clamp_high = [&](std::int64_t high) { output.high = clamp_to(high, output.low, output.high); };
  switch (activation) {
    case Activation::none:
      return;
    case Activation::relu:
      return clamp_low(codes.zero);
    case Activation::relu6:
      clamp_low(codes.zero);
      return clamp_high(codes.six);
    case Activation::relu_n1_to_1:
      clamp_low(codes.minus_one);
      return clamp_high(codes.one);
    default:
      fail(ErrorCode::unsupported, layer.name, "the fused activation is no clamp; run it as a table of its own");
  }
}

IntegerLayer layer_of(const QuantizedConv& plan, const ConvGeometry& geometry, Activation activation,
                      Rounding rounding) {
  IntegerLayer layer = weights_of(plan, geometry);
  const std::size_t n_channels = channels_of(layer);
  set_output(layer, plan.output_dtype, plan.requant == Requant::folded ? 0 : plan.output.zero_point);
  const double one = plan.output.steps_per_unit;
  const auto steps = [](double x) {
    return static_cast<std::int64_t>(std::clamp(round_half_even(x), -0x1p32, 0x1p32));
  };
  const std::int64_t zero = plan.output.zero_point;
  const ActivationCodes codes{zero, zero - steps(one), zero + steps(one), zero + steps(6 * one)};
  set_activation(layer, activation, codes);
  if (plan.requant != Requant::mult31) {
    layer.rounding = plan.requant == Requant::folded ? Rounding::folded : Rounding::after_shift;
    take_gains(layer, plan, n_channels);
    return layer;
  }
  layer.rounding = rounding;
  layer.accumulator_32_bit = plan.input_dtype != DType::i16;
  set_scales(layer, scale_of(plan.input), plan.weight_scale, scale_of(plan.output));
  return layer;
}

}  // namespace weightmill
