#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include <weightmill/model/quantized_conv.h>

namespace weightmill {

/// x * 2^exponent: std::ldexp, at a tenth of its time for the exponents of normal numbers.
inline double times_pow2(double x, int exponent) noexcept {
  if (exponent < -1022 || exponent > 1023) return std::ldexp(x, exponent);
  return x * std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// x = fraction * 2^exponent.
struct Pow2Split {
  double fraction = 0;
  int exponent = 0;
  friend bool operator==(const Pow2Split&, const Pow2Split&) = default;
};

/// Splits x >= 0 so that `fraction` is in (0.5, 1]: 2^exponent is the power of two at or above x. A value within a
/// relative 2^-40 above a power of two counts as that power, with a fraction that exceeds 1 by as much: x is a
/// quotient, and one unit in its last place must not cost a bit of weight precision. Zero gives {0, 0}.
/// [docs/quantization.md §2]
Pow2Split split_pow2(double x);

/// The least integer k with 2^k >= x; x > 0 and finite.
int ceil_log2(double x);

/// The grid that maps [low, high], widened to contain 0, on the codes [code_low, code_high]; symmetric (zero point 0)
/// where code_low = -code_high. steps_per_unit is 0 for the range {0} or one too wide for double, and infinite for one
/// too narrow.  Requires low <= high, both finite.  [docs/quantization.md §2]
Grid grid_for_range(double low, double high, double code_low, double code_high);

}  // namespace weightmill
