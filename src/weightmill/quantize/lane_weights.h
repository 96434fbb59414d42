#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "layer.h"

namespace weightmill {

/// The integer weights of a layer at some scale, with what the bias needs to know about them. Between passes only
/// channels whose scale has changed are quantized again.
class LaneWeights {
 public:
  explicit LaneWeights(const Layer& layer) : layer_(layer) {}

  /// Quantizes at steps_per_unit[lane] (0: all zero).  [docs/quantization.md §2]
  void update(std::span<const double> steps_per_unit);

  /// Sum of a channel's integer weights.
  std::int64_t sum(std::size_t channel) const noexcept { return sum_[channel]; }
  /// Sums of the magnitudes of the integer weights of each channel.
  std::vector<std::int64_t> abs_sums() const;
  /// What the mean of the output lacks, real units, for each channel; zeros if the request has no input_mean.
  /// [docs/quantization.md §6]
  const std::vector<double>& mean_error();
  /// Hands on the weights; the object is then empty.
  std::vector<std::int8_t> take() && { return std::move(weight_); }

 private:
  void update_all();
  void update_channel(std::size_t channel);

  const Layer& layer_;
  std::vector<double> steps_;  ///< C; those the weights were made with; empty before the first update
  std::vector<std::int8_t> weight_;
  std::vector<std::int64_t> sum_;
  std::vector<double> mean_error_;
};

/// Sum over rows of (weight - quantized / steps_per_unit) * input_mean, for each channel; quantized counts as 0 where
/// steps_per_unit is 0.  `steps_per_unit`: C; `input_mean`: G * I.
std::vector<double> mean_errors(const Layer& layer, std::span<const std::int8_t> quantized,
                                std::span<const double> steps_per_unit, std::span<const float> input_mean);

}  // namespace weightmill
