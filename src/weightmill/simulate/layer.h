#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <weightmill/kernels/requantize.h>
#include <weightmill/model/dtype.h>
#include <weightmill/model/graph.h>
#include <weightmill/model/quantized_conv.h>
#include <weightmill/model/shape.h>

namespace weightmill {

/// How a kernel moves over the spatial axes, outermost first: [h, w] or [d, h, w]. One value for each axis.
///
/// Output extents:  (in + pad_before + pad_after - reach) / stride + 1  with reach = (kernel - 1) * dilation + 1;
/// transposed:      (in - 1) * stride + reach - pad_before - pad_after.
/// Negative padding crops (transposed: extends). What lies outside the input is real 0, code `input_zero_point`.
struct ConvGeometry {
  std::vector<std::int64_t> stride;    ///< >= 1
  std::vector<std::int64_t> dilation;  ///< >= 1
  std::vector<std::int64_t> pad_before;
  std::vector<std::int64_t> pad_after;
  bool transposed = false;
};

/// Whose zero-point terms are in the bias.
enum class BiasForm : std::uint8_t {
  plain,   ///< acc = sum((q_in - input_zero_point) * weight) + bias: TFLite, ONNX
  folded,  ///< acc = sum(q_in * weight) + bias: planned convolutions with `folded` or `after_shift` requantization
};

/// One weighted layer with nothing but integers (and the engine's own gains, for float_gain, double_gain, openvino).
/// I, G, O are input channels per group, groups, output channels per group; C = G * O. Dense: [1, 1, I, 1, O];
/// depthwise: [h, w, 1, C / multiplier, multiplier]; transposed: the kernel is not flipped.
struct IntegerLayer {
  std::string name;  ///< for messages
  ConvGeometry geometry;
  Shape weight_shape;                ///< [kh, kw, I, G, O] or [kd, kh, kw, I, G, O]
  std::vector<std::int16_t> weight;  ///< row-major, less the weights' zero point; in [-255, 255]
  std::vector<std::int64_t> bias;    ///< C; empty: none
  BiasForm bias_form = BiasForm::plain;
  DType input_dtype = DType::i8;      ///< i8, u8 or i16
  std::int64_t input_zero_point = 0;  ///< within input_dtype
  /// C, or empty for 0: 1 or 8 where an int16 input is split as QuantizedConv says. Only with BiasForm::folded.
  std::vector<std::uint8_t> intrinsic_shift;
  DType output_dtype = DType::i8;  ///< i8, u8, i16 or i32 (not with float_gain); openvino: i8, u8
  OutputCodes output;              ///< limits within output_dtype
  Rounding rounding = Rounding::gemmlowp_double;
  /// The engine keeps 32 bits of the accumulator. Where it is true, sums beyond are wrapped (saturated by folded and
  /// after_shift); where it is false, int16x8, double_gain, half_* and ethos_u_* see the whole sum.
  bool accumulator_32_bit = true;
  std::vector<std::int64_t> multiplier;  ///< C; not for folded and gains. Limits: kernels/rounding_rules.h
  std::vector<std::int32_t> shift;       ///< C; not for gains
  std::vector<float> gain;               ///< C; float_gain: finite, >= 0; openvino: at most 2^96
  std::vector<float> offset;             ///< C; openvino only: within +-2^126; has the bias
  FloatStep last;                        ///< openvino only: finite
  std::vector<double> wide_gain;         ///< C; double_gain only: finite, >= 0
};

/// Sets output_dtype, and output to all its codes with this zero point.
/// Throws: unsupported for a type IntegerLayer does not list; bad_request if the zero point is no code of it.
void set_output(IntegerLayer& layer, DType dtype, std::int64_t zero_point);

/// The multiplier M in [2^30, 2^31) and shift s in [1, 62] with M * 2^-s nearest to `gain`, ties away; {0, 31} where
/// the gain is below 2^-32, {2^31 - 1, 1} where it is 2^30 or more. gain >= 0, finite. Source: gemmlowp, TFLite.
FixedPoint quantize_multiplier(double gain) noexcept;

/// Fills multiplier and shift, or the gain, for layer.rounding from the tensors' scales (real units per step), as
/// engines do: M and double_gain from double(input) * double(weight) / double(output); float_gain (input * weight) /
/// output, each step in float32; openvino* as docs/rounding.md says, from the layer's bias, input zero point, output and
/// activation too, which must have been set: the bias moves into the offsets. `weight_scale` is one, or one for each output
/// channel.
///
/// Throws: bad_request if a scale is not finite and positive, or the number of weight scales is another, or openvino's
/// steps leave float32 (names the layer); unsupported if openvino's codes are not of 8 bits; bad_option if the rounding
/// rule is not made from three scales (folded, after_shift, ethos_u_*).
void set_scales(IntegerLayer& layer, float input_scale, std::span<const float> weight_scale, float output_scale);

/// Output codes at which fused activations clamp, as the engine rounds them.
struct ActivationCodes {
  std::int64_t zero = 0;
  std::int64_t minus_one = 0;
  std::int64_t one = 0;
  std::int64_t six = 0;
};

/// How an engine makes a code of a real limit.
enum class LimitRounding : std::uint8_t {
  half_away,  ///< zero_point + round(limit / scale), ties away from zero: LiteRT's own kernels
  half_even,  ///< round(limit / scale + zero_point), ties to even: XNNPACK
};

/// Each step in float32. `output_scale` > 0.
ActivationCodes activation_codes(LimitRounding rounding, float output_scale, std::int64_t zero_point) noexcept;

/// Narrows layer.output to what a fused activation lets through.
/// Throws: unsupported for activations that no integer clamp expresses (tanh, sign_bit, sigmoid).
void set_activation(IntegerLayer& layer, Activation activation, const ActivationCodes& codes);

/// A planned convolution as the simulator runs it. mult31 plans are rounded by `rounding`, which must be a rule made
/// from three scales; the other plans have their own and ignore it.
/// Throws: bad_request if the plan's arrays contradict its shape; bad_option as set_scales.
IntegerLayer layer_of(const QuantizedConv& plan, const ConvGeometry& geometry, Activation activation,
                      Rounding rounding);

}  // namespace weightmill
