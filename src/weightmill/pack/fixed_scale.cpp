#include "fixed_scale.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/rounding.h>

namespace weightmill {
namespace {

constexpr int kMultiplierBits = 31;
constexpr int kLargestShift = 63;
constexpr std::int64_t kLargestReduced = 32767;

/// Multiplier and shift before any limit.
FixedPoint split(double factor) {
  if (!std::isfinite(factor))
    fail(ErrorCode::bad_request, "scale", fmt::format("is {}, wanted a finite number", factor));
  int exponent = 0;
  const double significand = std::frexp(factor, &exponent);
  // round_half_away equals trunc(x + 0.5) here: x has at most 53 bits of which 31 lie before the point.
  return {static_cast<std::int64_t>(round_half_away(std::ldexp(significand, kMultiplierBits))),
          kMultiplierBits - exponent};
}

void check_divisor(const char* name, double value) {
  if (value == 0) fail(ErrorCode::bad_request, name, "is 0, which nothing can be divided by");
}

}  // namespace

FixedPoint quantise_scale(double factor) {
  const FixedPoint result = split(factor);
  return result.shift < 0 || result.shift > kLargestShift ? FixedPoint{0, 16} : result;
}

FixedPoint reduced_quantise_scale(double factor) {
  const auto [multiplier, shift] = quantise_scale(factor);
  const std::int64_t reduced = multiplier < kLargestReduced << 16 ? (multiplier + (1 << 15)) >> 16 : kLargestReduced;
  return {reduced, shift - 16};
}

namespace {

FixedPoint repaired(FixedPoint value) {
  if (value.shift > kLargestShift) {
    const int excess = value.shift - kLargestShift;
    const bool survives = excess < kMultiplierBits && value.multiplier > std::int64_t{1} << excess;
    return survives ? FixedPoint{value.multiplier >> excess, kLargestShift} : FixedPoint{0, 0};
  }
  if (value.shift < 0) {
    const bool fits = value.shift > -32 && value.multiplier < std::int64_t{1} << (value.shift + 32);
    return fits ? FixedPoint{value.multiplier << -value.shift, 0} : value;
  }
  return value;
}

/// A multiplier of 2^31 would not fit the 32-bit integer that the C++ core keeps it in.
FixedPoint split_within_31_bits(double factor) {
  FixedPoint result = split(factor);
  if (result.multiplier == std::int64_t{1} << kMultiplierBits) {
    result.multiplier >>= 1;
    --result.shift;
  }
  return result;
}

}  // namespace

FixedPoint quantise_scale_regor(double factor) { return repaired(split_within_31_bits(factor)); }

FixedPoint reduced_quantise_scale_regor(double factor) {
  FixedPoint value = split_within_31_bits(factor);
  value.multiplier = std::min((value.multiplier >> 16) + ((value.multiplier >> 15) & 1), kLargestReduced);
  value.shift -= 16;
  return repaired(value);
}

FixedPoint quantise_pooling_scale(std::int64_t n_elements, int rescale_bits) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 33;
  if (n_elements < 1 || n_elements > kMostElements) {
    fail(ErrorCode::bad_request, "n_elements", fmt::format("is {}, wanted 1..2^33", n_elements));
  }
  if (rescale_bits < 0 || rescale_bits > kMultiplierBits) {
    fail(ErrorCode::bad_request, "rescale_bits", fmt::format("is {}, wanted 0..31", rescale_bits));
  }
  int exponent = 0;
  std::frexp(static_cast<double>(n_elements - 1), &exponent);
  const int shift = kMultiplierBits - rescale_bits + exponent;
  if (shift > kLargestShift) {
    fail(ErrorCode::bad_request, "n_elements",
         fmt::format("{} elements need a shift of {}, wanted at most 63", n_elements, shift));
  }
  const std::uint64_t scaled = (std::uint64_t{1} << shift) + (std::uint64_t{1} << exponent);
  return {static_cast<std::int64_t>(scaled / static_cast<std::uint64_t>(n_elements)), shift};
}

FixedPoint elementwise_mul_scale(double a, double b, double out, bool use_double) {
  check_divisor("output scale", out);
  if (use_double) return quantise_scale(a * b / out);
  const float product = static_cast<float>(a) * static_cast<float>(b);
  return quantise_scale(static_cast<double>(product / static_cast<float>(out)));
}

SimplifiedAddSubScale simplified_elementwise_add_sub_scale(double a, double b, double out, int input_shift) {
  check_divisor("output scale", out);
  const double larger = std::max(a, b);
  check_divisor("larger input scale", larger);
  const double one = std::ldexp(1.0, input_shift);
  const double output = 2 * larger / (out * one);
  return {a * one / (2 * larger), b * one / (2 * larger), quantise_scale(output)};
}

AdvancedAddSubScale advanced_elementwise_add_sub_scale(double a, double b, double out, int ifm_bits) {
  const int input_shift = ifm_bits == 8 ? 20 : 15;
  const auto simplified = simplified_elementwise_add_sub_scale(std::min(a, b), std::max(a, b), out, input_shift);
  return {quantise_scale(simplified.a_rescale), simplified.output, a < b ? OperandToScale::a : OperandToScale::b};
}

}  // namespace weightmill
