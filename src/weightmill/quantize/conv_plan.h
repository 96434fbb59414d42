#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <weightmill/model/quantized_conv.h>

namespace weightmill {

/// `fixed` repairs what `classic` leaves to chance: the 7-bit multiplier is exact, bias correction works without a
/// bias, a dead channel's bias is clipped instead of searched for, the accumulator is checked, the search cannot fail.
/// `classic` is for conformance with planners that do not.  [docs/quantization.md §8]
enum class PlanPolicy : std::uint8_t { classic, fixed };

/// How a 7-bit multiplier is made. Neither is better everywhere; search_output_scale tries both.
enum class MultiplierRule : std::uint8_t {
  by_policy,  ///< fixed: exact; classic: nearest
  exact,      ///< rounded up, and the weights shrink by up to 1.6 % to make the gain exact
  nearest,    ///< the peak weight stays on 127, the gain is off by up to 2^-7
};

/// Values in [low, high], real units.
struct RealRange {
  double low = 0;
  double high = 0;
};

/// A convolution-like layer in floating point and what is wanted of it. Spans must outlive the call only.
///
/// I, G, O are input channels per group, groups and output channels per group; C = G * O.
struct ConvRequest {
  std::string_view name = "layer";      ///< for messages
  std::span<const float> weight;        ///< row-major, of `weight_shape`
  Shape weight_shape;                   ///< [kh, kw, I, G, O] or [kd, kh, kw, I, G, O]
  std::optional<std::span<const float>> bias = {};        ///< C
  Grid input;
  RealRange output;                     ///< what the output was seen to take; widened to contain 0
  ConvMode mode = ConvMode::mult31_i8;
  PlanPolicy policy = PlanPolicy::fixed;
  MultiplierRule multiplier = MultiplierRule::by_policy;  ///< of mult7 modes
  bool per_channel = true;              ///< one weight scale for each output channel
  bool asymmetric = true;               ///< the output may have a zero point; mult31_i16 is always symmetric
  bool int16_input = false;             ///< mult31 modes: the input has the type of the output, whatever this says
  bool relu_workaround = false;         ///< an activation is applied by saturation: folded 8- and 16-bit modes only
  bool allow_int32 = false;             ///< pow2_folded_i16 per tensor: hand on the accumulator itself
  bool allow_zero_output = false;       ///< plan an output range of {0} with one step per unit and a warning
  std::optional<std::span<const float>> input_mean = {};  ///< G * I, real units; given: the bias is corrected
};

/// Chooses scales, shifts, integer weights and bias for one layer. A pure function: same request, same bits, on every
/// machine. The work is bounded: at most 64 passes (18 under the classic policy) over a layer.
///
/// Throws, in this order of checks, bad_request with a message that begins "E_...: ":
///   E_SHAPE        weight not of rank 5 or 6, empty, or a length that does not fit it (weight, bias, input_mean)
///   E_NOT_FINITE   NaN or infinity in weight, bias, input_mean or output range
///   E_RANGE        output.low > output.high
///   E_INPUT_SCALE  input.steps_per_unit not positive and finite; mult31: or its reciprocal not in float32's range
///   E_INPUT_ZERO   input.zero_point outside the input's type, or not 0 for mult31_i16
///   E_RELU_MODE    relu_workaround with another mode than pow2_folded_i8 or pow2_folded_i16
///   E_ZERO_OUTPUT  output range {0} (without allow_zero_output), or one of no use: output steps per unit outside
///                  2^-512..2^512 (mult31: their reciprocal outside float32's range)
/// and unsupported with "E_NO_PLAN: ..." if the classic policy's search ends empty-handed.
/// Source: docs/quantization.md.
QuantizedConv plan_conv(const ConvRequest& request);

}  // namespace weightmill
