#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace weightmill {

/// 128 bits: an accumulator of int16 activations (up to 48 bits) times a 32-bit multiplier.
__extension__ using Int128 = __int128;

/// x * 2^-shift to the nearest integer, ties to even / towards plus infinity / away from zero. `Int` is a signed
/// integer that holds |x| + 2^shift; shift >= 0. Free of branches, so that loops over them become vector code.
template <class Int>
constexpr Int shift_half_even(Int x, int shift) noexcept {
  const Int half = (Int{1} << shift) >> 1;  // 0 for shift 0, which has no ties
  const Int below_half = half - static_cast<Int>(half != 0);
  return (x + below_half + ((x >> shift) & static_cast<Int>(half != 0))) >> shift;
}
template <class Int>
constexpr Int shift_half_up(Int x, int shift) noexcept {
  return (x + ((Int{1} << shift) >> 1)) >> shift;
}
template <class Int>
constexpr Int shift_half_away(Int x, int shift) noexcept {
  const Int half = (Int{1} << shift) >> 1;
  const Int minus_if_negative = x >> (8 * sizeof(Int) - 1);
  return (x + half + (half != 0 ? minus_if_negative : Int{0})) >> shift;
}

/// value within [low, high], as 32 bits.
template <class Int>
constexpr std::int32_t clamp_to(Int value, std::int32_t low, std::int32_t high) noexcept {
  return static_cast<std::int32_t>(std::clamp<Int>(value, low, high));
}

template <class Int>
constexpr std::int32_t saturate_i32(Int value) noexcept {
  return clamp_to<Int>(value, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max());
}

/// The named rules that turn an accumulator into `result`, of which  code = clamp(result + zero_point).
/// A multiplier M and a shift s stand for the gain M * 2^-s.  [docs/rounding.md]

/// shift_half_even(acc, s): the zero point is already in the bias, and M is 1.  0 <= s < 62.
constexpr std::int64_t requant_folded(std::int64_t acc, int shift) noexcept { return shift_half_even(acc, shift); }

/// shift_half_even(acc * M, s) for the 7-bit multipliers of the planner.  |acc| < 2^55, |M| < 2^7, 0 <= s < 62.
constexpr std::int64_t requant_after_shift(std::int64_t acc, std::int64_t multiplier, int shift) noexcept {
  return shift_half_even(acc * multiplier, shift);
}

/// One rounding of acc * M, ties up / away from zero / to even. `Wide` must hold |acc| * M + 2^(s-1): 64 bits do for a
/// 32-bit acc, M <= 2^31 and s <= 62; 128 bits for a 64-bit acc, M < 2^32 and s < 96.
template <class Wide>
constexpr Wide requant_half_up(Wide acc, std::int64_t multiplier, int shift) noexcept {
  return shift_half_up<Wide>(acc * multiplier, shift);
}
template <class Wide>
constexpr Wide requant_half_away(Wide acc, std::int64_t multiplier, int shift) noexcept {
  return shift_half_away<Wide>(acc * multiplier, shift);
}
template <class Wide>
constexpr Wide requant_half_even(Wide acc, std::int64_t multiplier, int shift) noexcept {
  return shift_half_even<Wide>(acc * multiplier, shift);
}

/// Two roundings: acc (first shifted left by 31 - s and wrapped to 32 bits where s < 31) times M, its high half rounded
/// half up; then a right shift by s - 31 with ties away from zero (`gemmlowp_double`) or up (`double_half_up`).
/// 0 <= M < 2^31, 0 <= s <= 62.
constexpr std::int32_t doubling_high_half(std::int32_t acc, std::int64_t multiplier, int shift) noexcept {
  const int left = std::max(31 - shift, 0);
  const auto shifted = static_cast<std::int32_t>(static_cast<std::uint32_t>(acc) << left);
  return static_cast<std::int32_t>((shifted * multiplier + (std::int64_t{1} << 30)) >> 31);
}
constexpr std::int64_t requant_gemmlowp_double(std::int32_t acc, std::int64_t multiplier, int shift) noexcept {
  return shift_half_away<std::int64_t>(doubling_high_half(acc, multiplier, shift), std::max(shift - 31, 0));
}
constexpr std::int64_t requant_double_half_up(std::int32_t acc, std::int64_t multiplier, int shift) noexcept {
  return shift_half_up<std::int64_t>(doubling_high_half(acc, multiplier, shift), std::max(shift - 31, 0));
}

/// M is first cut to 15 bits, then there is one rounding, ties up.  0 <= M < 2^31, 16 < s <= 78, |acc| < 2^47.
constexpr std::int64_t reduce_multiplier(std::int64_t multiplier) noexcept {
  return multiplier < 0x7fff0000 ? (multiplier + 0x8000) >> 16 : 0x7fff;
}
constexpr std::int64_t requant_int16x8(std::int64_t acc, std::int64_t multiplier, int shift) noexcept {
  return shift_half_up(acc * reduce_multiplier(multiplier), shift - 16);
}

/// float32(acc) * gain in float32, clamped to [low, high] (exact in float32), then to the nearest integer, ties to
/// even.
inline std::int32_t requant_float_gain(std::int32_t acc, float gain, float low, float high) noexcept {
  return static_cast<std::int32_t>(std::rint(std::min(std::max(static_cast<float>(acc) * gain, low), high)));
}

/// fma(float32(float32(acc) * gain) + offset, last_gain, last_offset): one rounding each for the product, the sum and
/// the fused second step. The zero point of uint8 codes is in the offsets.
inline float scaled_by_steps(std::int32_t acc, float gain, float offset, float last_gain, float last_offset) noexcept {
  return std::fma(static_cast<float>(acc) * gain + offset, last_gain, last_offset);
}

/// float64(acc) * gain in float64, to the nearest integer, ties away from zero, as int32: outside of it INT32_MIN,
/// which is what x86 conversions give.  |acc| < 2^53.
inline double scaled_by_double(std::int64_t acc, double gain) noexcept {
  return std::round(static_cast<double>(acc) * gain);
}
inline std::int32_t requant_double_gain(std::int64_t acc, double gain) noexcept {
  const double rounded = scaled_by_double(acc, gain);
  return rounded >= -0x1p31 && rounded < 0x1p31 ? static_cast<std::int32_t>(rounded)
                                                : std::numeric_limits<std::int32_t>::min();
}

/// Ethos-U's output scaling in double-rounding mode: two roundings as gemmlowp_double where s > 31, else one, ties up.
/// 0 <= M < 2^32, 0 <= s < 64.
constexpr Int128 requant_ethos_u_double(std::int64_t acc, std::int64_t multiplier, int shift) noexcept {
  const Int128 product = Int128{acc} * multiplier;
  if (shift <= 31) return shift_half_up(product, shift);
  return shift_half_away(shift_half_up(product, 31), shift - 31);
}

}  // namespace weightmill
