#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <weightmill/model/diagnostic.h>
#include <weightmill/model/dtype.h>
#include <weightmill/model/fixed_point.h>
#include <weightmill/model/shape.h>

namespace weightmill {

/// Quantization of an activation as the planner computes with it:  q = round(real * steps_per_unit) + zero_point.
/// `steps_per_unit` is the reciprocal of what TFLite and ONNX call scale.
struct Grid {
  double steps_per_unit = 1;     ///< > 0, finite; integer steps per real unit
  std::int64_t zero_point = 0;   ///< within the dtype of the activation
  friend bool operator==(const Grid&, const Grid&) = default;
};

/// How a convolution's accumulator becomes an output code, and in which type.  [docs/quantization.md §2]
enum class ConvMode : std::uint8_t {
  pow2_folded_i8,   ///< shift only; zero point inside the bias
  pow2_folded_i16,
  pow2_folded_i32,
  mult7_i8,         ///< 7-bit multiplier and shift; zero point added after the shift
  mult7_i16,
  pow2_i8,          ///< shift only; zero point added after the shift
  pow2_i16,
  mult31_i8,        ///< multiplier made by the engine from three float32 scales: TFLite, ONNX, OpenVINO, Ethos-U
  mult31_i16,       ///< the same with int16 activations, symmetric ("16x8")
};

/// What is done to the accumulator of a planned convolution.  [docs/quantization.md §3]
enum class Requant : std::uint8_t {
  folded,       ///< y = sat(rshift_half_even(acc + bias, shift))
  after_shift,  ///< y = sat(rshift_half_even((acc + bias) * multiplier, shift) + output.zero_point)
  mult31,       ///< y = sat(round((sum((q_in - input.zero_point) * weight) + bias) * gain) + output.zero_point)
};

/// A convolution, matrix product or transposed convolution in integers: what the planner returns, the simulator runs
/// and the exporters write.
///
/// I, G, O are input channels per group, groups, output channels per group; C = G * O output channels, channel
/// g * O + o; L scale lanes: L = C where `per_channel`, else 1. Dense layers are [1, 1, I, 1, O], depthwise
/// [H, W, 1, C, multiplier], transposed convolutions have the output channel last too, and an unflipped kernel.
///
/// For `folded` and `after_shift` the accumulator is  acc = sum(q_in * weight)  with padding filled by
/// input.zero_point; all zero-point terms are inside `bias`. With int16 input (intrinsic_shift 1 or 8) q_in is split:
///   a = q_in >> 1,  msb = a >> 7,  lsb = a & 127
///   intrinsic_shift 1:  acc = (sum(msb * weight) << 7) + sum(lsb * weight)
///   intrinsic_shift 8:  acc = sum(msb * weight) + rshift_half_even(sum(lsb * weight), 7)
/// For `mult31` zero points are not in the bias.
struct QuantizedConv {
  ConvMode mode = ConvMode::mult31_i8;  ///< as planned: a ReLU fallback may have changed the one asked for
  Requant requant = Requant::mult31;
  bool per_channel = true;
  bool exact_gain = true;               ///< false: 7-bit multipliers rounded to nearest, gains off by up to 2^-7
  DType input_dtype = DType::i8;        ///< i8 or i16
  DType output_dtype = DType::i8;       ///< i8, i16 or i32
  Grid input;
  Grid output;                          ///< may differ from what the output range asks for
  Shape weight_shape;                   ///< [kh, kw, I, G, O] or [kd, kh, kw, I, G, O]
  std::vector<std::int8_t> weight;      ///< row-major, each in [-127, 127]
  std::vector<std::int32_t> bias;       ///< C; steps of bias_steps_per_unit, with the zero-point terms
  std::vector<double> real_bias;        ///< C; real units, bias correction included; zeros where the layer had none
  /// L; accumulator to output steps: shift in [0, 31] and multiplier 1, or shift in [0, 38] and multiplier in [1, 127].
  /// Empty for mult31, where the engine makes it of the three scales, with a rounding of its own.
  std::vector<FixedPoint> gain;
  std::vector<std::uint8_t> intrinsic_shift;      ///< L; 0 for int8 input and mult31; 1 (low) or 8 (high) for int16
  std::vector<double> weight_steps_per_unit;      ///< L; 0 for a dead lane (all its weights are 0)
  std::vector<double> bias_steps_per_unit;        ///< L; > 0, also for a dead lane
  std::vector<float> weight_scale;                ///< C for mult31, else empty; > 0; real units per step
  std::vector<int> weight_drop;                   ///< L; weight bits given up so that the bias fits
  std::vector<Diagnostic> diagnostics;            ///< in the order of the steps that raised them
  int attempts = 1;                               ///< passes of the planner
};

/// "pow2_folded_i8" and so on.
std::string_view name_of(ConvMode mode) noexcept;
/// The mode called `name`. Throws: bad_option, "E_MODE: ...", if there is none (names those there are).
ConvMode conv_mode_of(std::string_view name);
/// "folded", "after_shift" or "mult31".
std::string_view name_of(Requant requant) noexcept;

}  // namespace weightmill
