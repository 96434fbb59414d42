#pragma once

#include <cstdint>

namespace weightmill::mlw {

/// Weights are 9-bit sign-magnitude numbers: an 8-bit weight after its zero point was taken off.
inline constexpr int kMaxWeight = 255;
/// The folded form of -255, the largest there is; one more than the largest index, too.
inline constexpr unsigned kMaxCodeValue = 511;
inline constexpr unsigned kCodeValues = kMaxCodeValue + 1;

/// "Minus zero", which fold() never gives: the code value of a zero that is not in the palette.
inline constexpr unsigned kMinusZero = 1;

/// 0, +1, -1, +2, -2 … -> 0, 2, 3, 4, 5 …  Requires: -255 <= weight <= 255.
constexpr unsigned fold(int weight) noexcept {
  return weight < 0 ? static_cast<unsigned>(-2 * weight + 1) : static_cast<unsigned>(2 * weight);
}

/// The inverse; kMinusZero is 0.
constexpr std::int16_t unfold(unsigned code) noexcept {
  const int magnitude = static_cast<int>(code >> 1);
  return static_cast<std::int16_t>((code & 1) != 0 ? -magnitude : magnitude);
}

}  // namespace weightmill::mlw
