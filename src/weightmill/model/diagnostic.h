#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace weightmill {

/// What a planner found worth telling about one layer. Names that begin with W_ cost precision, X_ name a risk that
/// stays in the plan, N_ a choice, I_ is information.  [docs/quantization.md §9]
enum class DiagnosticCode : std::uint8_t {
  all_zero,        ///< W_ALL_ZERO: no weight of the layer reaches half a step
  some_zero,       ///< W_SOME_ZERO: no weight of some channels does
  output_rescaled, ///< W_OUTPUT_RESCALED: the output scale was coarsened because a channel's gain is above 1
  shift_reduced,   ///< W_SHIFT_REDUCED: weights gave up bits because the shift was too long
  shift_zeroed,    ///< W_SHIFT_ZEROED: weights were set to zero because the shift was too long
  zp_reduced,      ///< W_ZP_REDUCED: weights gave up bits because the output's zero point did not fit the accumulator
  bias_reduced,    ///< W_BIAS_REDUCED: weights gave up bits because the bias did not fit
  bias_saturated,  ///< X_BIAS_SATURATED: a dead channel's bias does not fit and was clipped
  acc_risk,        ///< X_ACC_RISK: the accumulator can leave 32 bits for extreme inputs
  intrinsic,       ///< N_INTRINSIC: channels use the high intrinsic shift of the int16 convolution
  relu_fallback,   ///< N_RELU_FALLBACK: the mode was changed so that the activation can follow the shift
  int4_per_tensor, ///< W_INT4_PER_TENSOR: int4 weights with one scale for the whole tensor
  zero_output,     ///< W_ZERO_OUTPUT: the calibrated output is zero; planned with one step per unit
  dead_channels,   ///< I_DEAD_CHANNELS: mult31: channels without weights; their bias is kept
  scale_for_bias,  ///< I_SCALE_FOR_BIAS: mult31: weight scale raised so that the bias fits
  scale_for_gain,  ///< I_SCALE_FOR_GAIN: mult31: weight scale raised so that the gain is not below 2^-31
};

/// What happened to one channel (or the whole tensor where scales are per tensor).
struct ChannelEffect {
  std::int64_t channel = -1;  ///< output channel; -1 for all
  double bits_lost = 0;       ///< of weights (output_rescaled: of the output); infinite for a dead channel
  friend bool operator==(const ChannelEffect&, const ChannelEffect&) = default;
};

struct Diagnostic {
  DiagnosticCode code;
  std::vector<ChannelEffect> channels;
  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

std::string_view name_of(DiagnosticCode code) noexcept;    ///< "W_BIAS_REDUCED" and so on
std::string_view cause_of(DiagnosticCode code) noexcept;   ///< one sentence: why it happens
std::string_view remedy_of(DiagnosticCode code) noexcept;  ///< one sentence: what a user can do

}  // namespace weightmill
