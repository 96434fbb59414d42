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
  const double step = 1 / plan.output.steps_per_unit;
  return sum / static_cast<double>(layer.n_channels) + step * step / 12;
}

}  // namespace

ScaleChoice search_output_scale(const ConvRequest& request, const ScaleSearch& search) {
  if (search.n_candidates == 0) fail(ErrorCode::bad_request, request.name, "E_SHAPE: no output scale to try");
  const Layer layer = check_request(request);
  const std::vector<double> squares = input_squares(layer, search);
  ScaleChoice best;
  for (unsigned i = 0; i < search.n_candidates; ++i) {
    ConvRequest candidate = request;
    const double factor = std::exp2(static_cast<double>(i) / search.n_candidates);
    candidate.output = {request.output.low * factor, request.output.high * factor};
    if (!std::isfinite(candidate.output.low) || !std::isfinite(candidate.output.high)) break;
    QuantizedConv plan = plan_conv(candidate);
    const double noise = search.measured_noise ? search.measured_noise(plan) : expected_noise(layer, plan, squares);
    if (i == 0) best.noise_without = noise;
    if (i == 0 || noise < best.noise) {
      best.plan = std::move(plan);
      best.range_factor = factor;
      best.noise = noise;
    }
  }
  return best;
}

}  // namespace weightmill
