#include "mult31_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <weightmill/base/rounding.h>
#include <weightmill/kernels/channel_rows.h>

#include "lane_weights.h"

namespace weightmill {
namespace {

/// Lanes whose weight scale is not the one its peak asks for.
struct Raised {
  std::vector<ChannelEffect> dead;
  std::vector<ChannelEffect> for_bias;
  std::vector<ChannelEffect> for_gain;
};

struct Scales {
  double input;   ///< real units per step
  double output;
};

/// float32 holds no scale beyond its range; 0 is none at all.
float to_float_scale(double scale) {
  const double largest = std::numeric_limits<float>::max();
  const double least = std::numeric_limits<float>::denorm_min();
  return static_cast<float>(std::clamp(scale, least, largest));
}

/// The largest |bias| of each lane.
std::vector<double> bias_peaks(const Layer& layer) {
  std::vector<double> peak(layer.n_lanes);
  for (std::size_t c = 0; c < layer.n_channels; ++c) {
    double& most = peak[layer.lane_of(c)];
    most = std::max(most, std::abs(layer.bias_of(c)));
  }
  return peak;
}

/// The weight scale of one lane: the peak on 127, but the gain not below 2^-31 and the bias within 2^30 steps.
float choose_scale(double peak, double bias_peak, const Scales& scales, std::int64_t channel, Raised& raised) {
  const double gain_one = scales.output / scales.input;
  const double ideal = peak == 0 ? gain_one : peak / 127.0;
  const double for_gain = gain_one * 0x1p-31;
  const double for_bias = bias_peak / (scales.input * 0x1p30);
  const double scale = std::max({ideal, for_gain, for_bias});
  if (peak == 0) {
    raised.dead.push_back({channel, std::numeric_limits<double>::infinity()});
  } else if (scale > ideal) {
    auto& list = for_bias >= for_gain ? raised.for_bias : raised.for_gain;
    list.push_back({channel, std::log2(scale / ideal)});
    if (peak / scale <= 0.5) raised.dead.push_back({channel, std::numeric_limits<double>::infinity()});
  }
  return to_float_scale(scale);
}

void add_if_any(std::vector<Diagnostic>& diagnostics, DiagnosticCode code, std::vector<ChannelEffect> channels) {
  if (!channels.empty()) diagnostics.push_back({code, std::move(channels)});
}

void choose_scales(QuantizedConv& plan, const Layer& layer, const Scales& scales) {
  Raised raised;
  const std::vector<double> bias_peak = bias_peaks(layer);
  for (std::size_t l = 0; l < layer.n_lanes; ++l) {
    const std::int64_t channel = layer.request.per_channel ? static_cast<std::int64_t>(l) : -1;
    plan.weight_scale.push_back(choose_scale(layer.peak[l], bias_peak[l], scales, channel, raised));
  }
  if (layer.n_lanes == 1) plan.weight_scale.assign(layer.n_channels, plan.weight_scale[0]);
  add_if_any(plan.diagnostics, DiagnosticCode::dead_channels, std::move(raised.dead));
  add_if_any(plan.diagnostics, DiagnosticCode::scale_for_bias, std::move(raised.for_bias));
  add_if_any(plan.diagnostics, DiagnosticCode::scale_for_gain, std::move(raised.for_gain));
}

void quantize_weights(QuantizedConv& plan, const Layer& layer) {
  const std::vector<double> unit(plan.weight_scale.begin(), plan.weight_scale.end());
  std::vector<std::int64_t> sum(layer.n_channels);
  plan.weight.resize(layer.request.weight.size());
  quantize_rows_by_unit(layer.request.weight, unit, plan.weight, sum);
  // Only a subnormal scale is coarse enough, as float32, to let the peak pass 127.
  const float least = *std::min_element(plan.weight_scale.begin(), plan.weight_scale.end());
  if (least >= std::numeric_limits<float>::min()) return;
  for (std::int8_t& q : plan.weight) q = std::max<std::int8_t>(q, -127);
}

void quantize_bias(QuantizedConv& plan, const Layer& layer, double input_scale) {
  const bool corrected = layer.request.input_mean && (layer.request.bias || layer.request.policy == PlanPolicy::fixed);
  std::vector<double> error(layer.n_channels);
  if (corrected) {
    std::vector<double> steps(layer.n_channels);
    for (std::size_t c = 0; c < steps.size(); ++c) steps[c] = 1 / static_cast<double>(plan.weight_scale[c]);
    error = mean_errors(layer, plan.weight, steps, *layer.request.input_mean);
  }
  plan.bias.resize(layer.n_channels);
  for (std::size_t c = 0; c < layer.n_channels; ++c) {
    const double unit = input_scale * static_cast<double>(plan.weight_scale[c]);
    const double real = layer.bias_of(c) + error[c];
    plan.real_bias.push_back(real);
    const double steps = real == 0 ? 0.0 : round_half_even(real / unit);
    plan.bias[c] = static_cast<std::int32_t>(std::clamp<double>(steps, std::numeric_limits<std::int32_t>::min(),
                                                                std::numeric_limits<std::int32_t>::max()));
  }
}

constexpr double kLargestSum = std::numeric_limits<std::int32_t>::max();

/// Channels whose sum extreme inputs can carry beyond 32 bits, where engines wrap; of int16 activations they keep more.
std::vector<ChannelEffect> channels_at_risk(const QuantizedConv& plan, const Layer& layer) {
  std::vector<ChannelEffect> risky;
  if (plan.input_dtype == DType::i16) return risky;
  const auto zero = static_cast<double>(plan.input.zero_point);
  const double largest_input = std::max(zero + 128, 127 - zero);
  const auto fits = [&](double weights, std::size_t c) {
    return weights * largest_input + std::abs(static_cast<double>(plan.bias[c])) <= kLargestSum;
  };
  const double most = 127.0 * static_cast<double>(layer.n_rows);
  std::vector<std::int64_t> sums;
  for (std::size_t c = 0; c < layer.n_channels; ++c) {
    if (fits(most, c)) continue;  // the usual case needs no sums
    if (sums.empty()) {
      sums.resize(layer.n_channels);
      channel_abs_sums(plan.weight, sums);
    }
    if (!fits(static_cast<double>(sums[c]), c)) risky.push_back({static_cast<std::int64_t>(c), 0.0});
  }
  return risky;
}

}  // namespace

QuantizedConv plan_mult31(const Layer& layer) {
  const ConvRequest& request = layer.request;
  QuantizedConv plan;
  plan.mode = request.mode;
  plan.requant = Requant::mult31;
  plan.per_channel = request.per_channel;
  plan.input_dtype = plan.output_dtype = request.mode == ConvMode::mult31_i16 ? DType::i16 : DType::i8;
  plan.input = request.input;
  plan.output = wanted_output(request, request.mode);
  plan.weight_shape = request.weight_shape;
  const Scales scales{1 / request.input.steps_per_unit, 1 / plan.output.steps_per_unit};
  choose_scales(plan, layer, scales);
  quantize_weights(plan, layer);
  quantize_bias(plan, layer, scales.input);
  plan.intrinsic_shift.assign(layer.n_lanes, 0);
  plan.weight_drop.assign(layer.n_lanes, 0);
  for (std::size_t l = 0; l < layer.n_lanes; ++l) {
    const auto scale = static_cast<double>(plan.weight_scale[l]);
    plan.weight_steps_per_unit.push_back(1 / scale);
    plan.bias_steps_per_unit.push_back(1 / (scales.input * scale));
  }
  if (request.policy == PlanPolicy::fixed) {
    add_if_any(plan.diagnostics, DiagnosticCode::acc_risk, channels_at_risk(plan, layer));
  }
  if (plans_zero_output(request)) plan.diagnostics.push_back({DiagnosticCode::zero_output, {}});
  return plan;
}

}  // namespace weightmill
