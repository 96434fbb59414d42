#include "scale.h"

#include <algorithm>
#include <cmath>

#include <weightmill/base/rounding.h>

namespace weightmill {

Pow2Split split_pow2(double x) {
  if (x == 0) return {};
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);  // in [0.5, 1)
  if (mantissa <= 0.5 * (1 + 0x1p-40)) return {2 * mantissa, exponent - 1};
  return {mantissa, exponent};
}

int ceil_log2(double x) {
  int exponent = 0;
  return std::frexp(x, &exponent) == 0.5 ? exponent - 1 : exponent;
}

Grid grid_for_range(double low, double high, double code_low, double code_high) {
  low = std::min(low, 0.0);
  high = std::max(high, 0.0);
  if (low == 0 && high == 0) return {.steps_per_unit = 0, .zero_point = 0};
  if (code_low == -code_high) return {code_high / std::max(-low, high), 0};
  const double steps = (code_high - code_low) / (high - low);
  const double zero = std::clamp(round_half_even(code_low - low * steps), code_low, code_high);
  return {steps, std::isnan(zero) ? 0 : static_cast<std::int64_t>(zero)};
}

}  // namespace weightmill
