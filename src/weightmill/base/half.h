#pragma once

#include <bit>
#include <cstdint>

namespace weightmill {

/// The value of an IEEE binary16 (float16) number; exact. A NaN stays a NaN.
inline float from_f16(std::uint16_t half) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t shifted = static_cast<std::uint32_t>(half & 0x7fffu) << 13;
  if ((half & 0x7c00u) == 0x7c00u) return std::bit_cast<float>(sign | 0x7f80'0000u | shifted);
  // Read as float32 the exponent is 127 - 15 too small, also for subnormal numbers: one exact product puts both right.
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(std::bit_cast<float>(shifted) * 0x1p112f));
}

/// `x` as float16, to nearest, ties to even; from 65520 on to infinity.
inline std::uint16_t to_f16(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fff'ffffu;
  std::uint32_t half = 0;
  if (magnitude > 0x7f80'0000u) {
    half = 0x7e00u;  // quiet NaN
  } else if (magnitude >= 0x477f'f000u) {
    half = 0x7c00u;
  } else if (magnitude < 0x3880'0000u) {
    // Below 2^-14 float16 counts in steps of 2^-24, which is just what a float32 of [0.5, 1) counts in.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f00'0000u;
  } else {
    half = (magnitude - 0x3800'0000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

/// The value of a bfloat16 number; exact.
inline float from_bf16(std::uint16_t brain) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(brain) << 16);
}

/// `x` as bfloat16, to nearest, ties to even.
inline std::uint16_t to_bf16(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fff'ffffu) > 0x7f80'0000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);  // quiet NaN
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace weightmill
