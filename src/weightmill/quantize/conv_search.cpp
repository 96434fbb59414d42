#include "conv_search.h"

#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <weightmill/base/error.h>

#include "layer.h"

namespace weightmill {
namespace {

/// Mean squared input of each input channel.
std::vector<double> input_squares(const Layer& layer, const ScaleSearch& search) {
  const std::size_t n = layer.n_groups * layer.n_inputs;
  if (!search.input_square) {
    const double sigma = (layer.int16_input ? 65536 : 256) / layer.request.input.steps_per_unit / 6;
    return std::vector<double>(n, sigma * sigma);
  }
  if (search.input_square->size() != n) {
    fail(ErrorCode::bad_request, layer.request.name,
         fmt::format("E_SHAPE: input_square has {} values; wanted {}", search.input_square->size(), n));
  }
  return {search.input_square->begin(), search.input_square->end()};
}

/// What one integer step of a lane's weights is worth in real units, as the planned arithmetic has it.
std::vector<double> weight_units(const QuantizedConv& plan) {
  std::vector<double> unit;
  for (std::size_t c = 0; c < plan.bias.size(); ++c) {
    const std::size_t lane = plan.per_channel ? c : 0;
    if (plan.requant == Requant::mult31) {
      unit.push_back(static_cast<double>(plan.weight_scale[c]));
      continue;
    }
    const auto [multiplier, shift] = plan.gain[lane];
    const double gain = std::ldexp(static_cast<double>(multiplier), -shift - plan.intrinsic_shift[lane]);
    unit.push_back(gain * plan.input.steps_per_unit / plan.output.steps_per_unit);
  }
  return unit;
}

/// What a rounded multiplier makes of the bias, in real units.
double bias_error(const QuantizedConv& plan, std::size_t channel) {
  if (plan.exact_gain) return 0;
  const std::size_t lane = plan.per_channel ? channel : 0;
  const auto [multiplier, shift] = plan.gain[lane];
  const double gain = std::ldexp(static_cast<double>(multiplier), -shift);
  return plan.real_bias[channel] * (1 - plan.bias_steps_per_unit[lane] * gain / plan.output.steps_per_unit);
}

/// Expected mean square error of the output over all channels.
double expected_noise(const Layer& layer, const QuantizedConv& plan, std::span<const double> input_square) {
  const std::vector<double> unit = weight_units(plan);
  const std::span<const float> weight = layer.request.weight;
  double sum = 0;
  for (std::size_t i = 0; i < weight.size(); ++i) {
    const std::size_t c = i % layer.n_channels;
    const std::size_t input = i / layer.n_channels % layer.n_inputs;
    const double error = static_cast<double>(weight[i]) - static_cast<double>(plan.weight[i]) * unit[c];
    sum += error * error * input_square[c / layer.n_outputs * layer.n_inputs + input];
  }
  for (std::size_t c = 0; c < plan.real_bias.size(); ++c) sum += bias_error(plan, c) * bias_error(plan, c);
  const double step = 1 / plan.output.steps_per_unit;
  return sum / static_cast<double>(layer.n_channels) + step * step / 12;
}

struct Candidate {
  ConvRequest request;
  double range_factor;
};

/// The multiplier rules to try, the one that was asked for first.
std::vector<MultiplierRule> rules_of(const ConvRequest& request, const ScaleSearch& search) {
  const bool has_multiplier = request.mode == ConvMode::mult7_i8 || request.mode == ConvMode::mult7_i16;
  if (!search.try_multipliers || !has_multiplier || request.multiplier != MultiplierRule::by_policy) {
    return {request.multiplier};
  }
  const bool fixed = request.policy == PlanPolicy::fixed;
  return {request.multiplier, fixed ? MultiplierRule::nearest : MultiplierRule::exact};
}

/// What was asked for, and then the rest.
std::vector<Candidate> candidates_of(const ConvRequest& request, const ScaleSearch& search) {
  std::vector<Candidate> candidates;
  for (unsigned i = 0; i < search.n_candidates; ++i) {
    const double factor = std::exp2(static_cast<double>(i) / search.n_candidates);
    const RealRange range{request.output.low * factor, request.output.high * factor};
    if (!std::isfinite(range.low) || !std::isfinite(range.high)) break;
    for (const MultiplierRule rule : rules_of(request, search)) {
      candidates.push_back({request, factor});
      candidates.back().request.output = range;
      candidates.back().request.multiplier = rule;
    }
  }
  return candidates;
}

}  // namespace

ScaleChoice search_output_scale(const ConvRequest& request, const ScaleSearch& search) {
  if (search.n_candidates == 0) fail(ErrorCode::bad_request, request.name, "E_SHAPE: no output scale to try");
  const Layer layer = check_request(request);
  const std::vector<double> squares = input_squares(layer, search);
  ScaleChoice best;
  bool first = true;
  for (const Candidate& candidate : candidates_of(request, search)) {
    QuantizedConv plan = plan_conv(candidate.request);
    const double noise = search.measured_noise ? search.measured_noise(plan) : expected_noise(layer, plan, squares);
    if (first) best.noise_without = noise;
    if (!first && !(noise < best.noise)) continue;
    first = false;
    best.plan = std::move(plan);
    best.range_factor = candidate.range_factor;
    best.noise = noise;
  }
  return best;
}

}  // namespace weightmill
