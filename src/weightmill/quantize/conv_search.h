#pragma once

#include <functional>
#include <optional>
#include <span>

#include "conv_plan.h"

namespace weightmill {

struct ScaleSearch {
  /// Output ranges tried: the calibrated one times 2^(i / n_candidates), i = 0 .. n_candidates - 1. At least 1.
  unsigned n_candidates = 16;
  /// G * I; mean of the squared input in real units. Absent: the input spans its grid as a normal distribution of six
  /// standard deviations does.
  std::optional<std::span<const float>> input_square = {};
  /// mult7 modes: try the exact and the nearest multiplier at each scale, unless the request names one.
  bool try_multipliers = true;
  /// Measures the noise of a plan instead, say by simulation on samples; must be finite. An estimate takes neighbouring
  /// inputs for independent, which those behind a ReLU are not: measured noise finds better scales.
  std::function<double(const QuantizedConv&)> measured_noise = {};
};

/// What the search found.
struct ScaleChoice {
  QuantizedConv plan;
  double range_factor = 1;   ///< the output range planned for, over the calibrated one
  double noise = 0;          ///< mean square error expected at the output, real units, or as measured
  double noise_without = 0;  ///< the same of the plan that was asked for, without any search
};

/// Plans a layer at several output scales and returns the plan with the least expected noise; the first of equals.
///
/// A power-of-two gain leaves up to a bit of each channel's weights unused. As the output scale is free within a factor
/// of two, one that loses less can be worth its coarser output. Modes with a multiplier have less to gain; of 7-bit
/// ones both rules are tried.
/// Noise of a channel: the sum of its squared weight errors times `input_square`, the squared error of its bias, and
/// one twelfth of the output step squared. [docs/quantization.md §8]
/// Throws: as plan_conv; bad_request, "E_SHAPE: ...", for the length of input_square or no candidates.
ScaleChoice search_output_scale(const ConvRequest& request, const ScaleSearch& search = {});

}  // namespace weightmill
