#include "zero_point.h"

#include <algorithm>
#include <cmath>

#include <weightmill/base/rounding.h>

namespace weightmill {
namespace {

/// How far from an integer `code - zero_point` may be.
constexpr float kTolerance = 1e-4f;
/// float32's epsilon: below it OpenVINO takes a zero point for nothing.
constexpr float kNothing = 0x1p-23f;
/// numpy's default tolerances of allclose(), which the Python pass uses.
constexpr float kCloseAbsolute = 1e-8f;
constexpr float kCloseRelative = 1e-5f;

std::int32_t wrap_i8(float x) noexcept {
  return static_cast<std::int8_t>(static_cast<std::uint8_t>(static_cast<std::int64_t>(x)));
}

}  // namespace

std::int32_t lowest_code(DType type) noexcept {
  switch (type) {
    case DType::i4: return -8;
    case DType::i8: return -128;
    case DType::i16: return -32768;
    default: return 0;
  }
}

std::int32_t highest_code(DType type) noexcept {
  const auto codes = std::int32_t{1} << size_bits(type);
  return lowest_code(type) + codes - 1;
}

bool ZeroPointRule::is_nothing(float zero_point) const noexcept {
  if (semantics_ == FoldSemantics::mo2021) return std::abs(zero_point) <= arithmetic_.round(kCloseAbsolute);
  return std::abs(zero_point) < kNothing;
}

bool ZeroPointRule::may_vanish(float zero_point) const noexcept {
  const auto codes = static_cast<float>(std::int32_t{1} << size_bits(code_type_));
  if (!(std::abs(zero_point) <= 2 * codes)) return false;  // also NaN
  if (semantics_ == FoldSemantics::mo2021) return code_type_ == DType::i8;
  // In float16 the difference itself is rounded, to steps of up to 1/8.
  const float rounding = arithmetic_.type == DType::f32 ? 3 * codes * 0x1p-24f : 1;
  return std::abs(zero_point - round_half_even(zero_point)) < kTolerance + rounding;
}

bool ZeroPointRule::surely_vanishes(float zero_point, std::int32_t lowest, std::int32_t highest) const noexcept {
  if (semantics_ == FoldSemantics::mo2021 || arithmetic_.type == DType::bf16 || size_bits(code_type_) > 8) return false;
  const float whole = round_half_even(zero_point);
  // Up to 512, float32 rounds a difference by less than 2^-16. Float16 rounds `code - zero_point` to `code` where the
  // zero point is that small and the code is not 0.
  if (!(std::abs(zero_point) <= 256 && std::abs(zero_point - whole) < kTolerance - 0x1p-16f)) return false;
  if (whole == 0) return true;
  if (arithmetic_.type == DType::f16 || (semantics_ == FoldSemantics::openvino && code_type_ == DType::i4))
    return false;
  const auto shift = static_cast<std::int32_t>(whole);
  return lowest - shift >= lowest_code(code_type_) && highest - shift <= highest_code(code_type_);
}

std::optional<std::int32_t> ZeroPointRule::without(std::int32_t code, float zero_point) const noexcept {
  return semantics_ == FoldSemantics::mo2021 ? without_wrapped(code, zero_point) : without_rounded(code, zero_point);
}

std::optional<std::int32_t> ZeroPointRule::without_rounded(std::int32_t code, float zero_point) const noexcept {
  // OpenVINO takes a signed 4-bit code for its bit pattern, 0 to 15, before and after.
  const bool as_pattern = semantics_ == FoldSemantics::openvino && code_type_ == DType::i4;
  const std::int32_t lowest = as_pattern ? 0 : lowest_code(code_type_);
  const std::int32_t highest = as_pattern ? 15 : highest_code(code_type_);
  const float difference = arithmetic_.round(static_cast<float>(as_pattern ? code & 15 : code) - zero_point);
  const float rounded = round_half_even(difference);
  if (!(std::abs(rounded - difference) < kTolerance)) return std::nullopt;
  if (!(rounded >= static_cast<float>(lowest) && rounded <= static_cast<float>(highest))) return std::nullopt;
  const auto result = static_cast<std::int32_t>(rounded);
  return as_pattern ? (result ^ 8) - 8 : result;
}

/// The Python pass: the zero point goes through int8 and wraps, and the differences are compared as numpy does.
std::optional<std::int32_t> ZeroPointRule::without_wrapped(std::int32_t code, float zero_point) const noexcept {
  if (code_type_ != DType::i8 || !std::isfinite(zero_point)) return std::nullopt;
  const auto grid = [&](float x) { return arithmetic_.round(x); };
  const std::int32_t whole = wrap_i8(round_half_even(std::clamp(zero_point, -1e9f, 1e9f)));
  const float residual = grid(zero_point - static_cast<float>(whole));
  if (!(std::abs(residual) <= grid(kTolerance))) return std::nullopt;
  const std::int32_t result = wrap_i8(static_cast<float>(code - whole));
  const float before = grid(static_cast<float>(code) - zero_point);
  const float after = grid(static_cast<float>(result) - residual);
  const float allowed = grid(grid(kCloseAbsolute) + grid(grid(kCloseRelative) * std::abs(after)));
  if (!(std::abs(grid(before - after)) <= allowed)) return std::nullopt;
  return result;
}

}  // namespace weightmill
