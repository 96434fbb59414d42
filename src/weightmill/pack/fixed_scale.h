#pragma once

#include <cstdint>

#include <weightmill/model/fixed_point.h>

namespace weightmill {

/// How real rescale factors become multiplier and shift: factor ~ multiplier * 2^-shift.  [docs/scale-records.md §2]
/// All functions throw: bad_request if a factor is infinite or not a number, or a divisor is zero (names the argument).

/// multiplier = round-half-away(m * 2^31) with factor = m * 2^e, 1/2 <= |m| < 1; shift = 31 - e. The multiplier may be
/// 2^31. Where the shift is outside 0..63 the result is (0, 16). A negative factor gives a negative multiplier.
FixedPoint quantise_scale(double factor);

/// The same with a 16-bit multiplier, for 16-bit feature maps. The shift may be negative: no record can hold that.
FixedPoint reduced_quantise_scale(double factor);

/// As Vela's C++ core does it: a shift beyond 0..63 is repaired by moving bits of the multiplier where that is
/// possible, and m * 2^31 that rounds to 2^31 becomes 2^30 with one less shift.
FixedPoint quantise_scale_regor(double factor);
FixedPoint reduced_quantise_scale_regor(double factor);

/// 1 / n for an average over n elements, n in 1..2^33; `rescale_bits` in 0..31 leaves room at the multiplier's top.
/// The multiplier is below 2^33.
FixedPoint quantise_pooling_scale(std::int64_t n_elements, int rescale_bits = 0);

/// Multiplier and shift of an elementwise product: (a * b) / out, in float32 arithmetic unless `use_double`.
FixedPoint elementwise_mul_scale(double a, double b, double out, bool use_double = false);

/// Rescales of an elementwise sum whose operands are both brought to twice the larger scale.
struct SimplifiedAddSubScale {
  double a_rescale;  ///< real; times 2^input_shift
  double b_rescale;
  FixedPoint output;
};
SimplifiedAddSubScale simplified_elementwise_add_sub_scale(double a, double b, double out, int input_shift = 16);

enum class OperandToScale : std::uint8_t { none = 0, a = 1, b = 2 };

/// Rescales of an elementwise sum of which only the operand with the smaller scale is scaled.
struct AdvancedAddSubScale {
  FixedPoint input;
  FixedPoint output;
  OperandToScale operand;
};
/// `ifm_bits`: 8 or 16.
AdvancedAddSubScale advanced_elementwise_add_sub_scale(double a, double b, double out, int ifm_bits);

}  // namespace weightmill
