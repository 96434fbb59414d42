#include "lane_weights.h"

#include <algorithm>
#include <cmath>

#include <weightmill/base/rounding.h>
#include <weightmill/kernels/channel_rows.h>

namespace weightmill {

void LaneWeights::update(std::span<const double> steps_per_unit) {
  const std::size_t n = layer_.n_channels;
  std::vector<std::size_t> changed;
  changed.reserve(n);
  for (std::size_t c = 0; c < n; ++c) {
    const double steps = steps_per_unit[layer_.lane_of(c)];
    if (!steps_.empty() && steps_[c] == steps) continue;
    changed.push_back(c);
  }
  if (changed.empty()) return;
  mean_error_.clear();
  steps_.resize(n);
  for (const std::size_t c : changed) steps_[c] = steps_per_unit[layer_.lane_of(c)];
  // A sweep over rows takes 16 channels or more at a time; a channel by itself is read with a stride.
  if (weight_.empty() || changed.size() * 16 > n) return update_all();
  for (const std::size_t c : changed) update_channel(c);
}

void LaneWeights::update_all() {
  weight_.resize(layer_.request.weight.size());
  sum_.resize(layer_.n_channels);
  quantize_rows(layer_.request.weight, steps_, weight_, sum_);
}

void LaneWeights::update_channel(std::size_t channel) {
  const double steps = steps_[channel];
  std::int64_t sum = 0;
  for (std::size_t i = channel; i < weight_.size(); i += layer_.n_channels) {
    const double x = std::clamp(static_cast<double>(layer_.request.weight[i]) * steps, -128.0, 127.0);
    weight_[i] = static_cast<std::int8_t>(round_half_even(x));
    sum += weight_[i];
  }
  sum_[channel] = sum;
}

std::vector<std::int64_t> LaneWeights::abs_sums() const {
  std::vector<std::int64_t> sums(layer_.n_channels);
  channel_abs_sums(weight_, sums);
  return sums;
}

const std::vector<double>& LaneWeights::mean_error() {
  if (mean_error_.empty()) {
    mean_error_ = layer_.request.input_mean ? mean_errors(layer_, weight_, steps_, *layer_.request.input_mean)
                                            : std::vector<double>(layer_.n_channels);
  }
  return mean_error_;
}

std::vector<double> mean_errors(const Layer& layer, std::span<const std::int8_t> quantized,
                                std::span<const double> steps_per_unit, std::span<const float> input_mean) {
  std::vector<double> error(layer.n_channels);
  const std::span<const float> weight = layer.request.weight;
  for (std::size_t r = 0; r < layer.n_rows; ++r) {
    for (std::size_t c = 0; c < layer.n_channels; ++c) {
      const std::size_t at = r * layer.n_channels + c;
      const double steps = steps_per_unit[c];
      const double fake = steps == 0 ? 0.0 : static_cast<double>(quantized[at]) / steps;
      const auto mean = static_cast<double>(input_mean[c / layer.n_outputs * layer.n_inputs + r % layer.n_inputs]);
      error[c] += (static_cast<double>(weight[at]) - fake) * mean;
    }
  }
  return error;
}

}  // namespace weightmill
