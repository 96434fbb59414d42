#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "conv_plan.h"

namespace weightmill {

/// What is special about a mode.  [docs/quantization.md §2]
struct ModeTraits {
  unsigned bits;           ///< of the output's type
  bool folded;             ///< the zero point is inside the bias
  bool multiplier;         ///< 7-bit multiplier
  double code_low;         ///< asymmetric output range
  double code_high;
  double symmetric_high;   ///< symmetric output range: -symmetric_high..symmetric_high
};

const ModeTraits& traits_of(ConvMode mode) noexcept;
bool is_mult31(ConvMode mode) noexcept;

/// A checked request with the numbers every pass needs.
struct Layer {
  const ConvRequest& request;
  std::size_t n_inputs;    ///< I
  std::size_t n_groups;    ///< G
  std::size_t n_outputs;   ///< O
  std::size_t n_channels;  ///< C
  std::size_t n_rows;      ///< taps * I: weights of a channel
  std::size_t n_lanes;     ///< C, or 1 per tensor
  bool int16_input;
  std::vector<double> channel_peak;  ///< C; max |weight|
  std::vector<double> peak;          ///< lanes

  std::size_t lane_of(std::size_t channel) const noexcept { return n_lanes == 1 ? 0 : channel; }
  double bias_of(std::size_t channel) const noexcept {
    return request.bias ? static_cast<double>((*request.bias)[channel]) : 0.0;
  }
};

/// Checks all preconditions but E_ZERO_OUTPUT. Throws: as plan_conv.
Layer check_request(const ConvRequest& request);

/// The output grid that the request asks for in `mode`. Throws: bad_request, E_ZERO_OUTPUT.
Grid wanted_output(const ConvRequest& request, ConvMode mode);

/// Whether wanted_output() takes {0} for a range of its own making.
bool plans_zero_output(const ConvRequest& request) noexcept;

}  // namespace weightmill
