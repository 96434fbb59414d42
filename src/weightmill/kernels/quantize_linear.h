#pragma once

#include <cstdint>
#include <span>

namespace weightmill {

/// The codes that QuantizeLinear may give: whole numbers, low <= high, within 16 bits.
struct CodeRange {
  std::int32_t low = -128;
  std::int32_t high = 127;
};

/// Codes as ONNX Runtime's QuantizeLinear gives them, each float32 operation rounded:
///   code = round_half_even(min(max(x / scale, low - zero_point), high - zero_point)) + zero_point
/// `x`, `codes`: N; `codes` gets the low 16 bits of each code. All with one `scale`, neither 0 nor NaN, and one
/// `zero_point` in the range. Returns whether an x was NaN; its code means nothing.
bool quantize_linear_run(std::span<const float> x, float scale, std::int32_t zero_point, CodeRange range,
                         std::span<std::uint16_t> codes) noexcept;

/// The same with a scale and a zero point for each x. `scale`, `zero_point`: N.
bool quantize_linear_each(std::span<const float> x, std::span<const float> scale,
                          std::span<const std::int32_t> zero_point, CodeRange range,
                          std::span<std::uint16_t> codes) noexcept;

/// How far, in steps, x / scale lies beyond its code, at most: the largest |x / scale - (code - zero_point)|, where
/// what is below the lowest code or above the highest one does not count. In float64, with steps_per_unit = 1 / scale.
/// 0 if N = 0. `x`, `codes`: N, neither NaN; `codes` as quantize_linear_run() gives them.
double linear_distance_run(std::span<const float> x, std::span<const std::uint16_t> codes, double steps_per_unit,
                           std::int32_t zero_point, CodeRange range) noexcept;

/// The same with a scale and a zero point for each x.
double linear_distance_each(std::span<const float> x, std::span<const std::uint16_t> codes,
                            std::span<const double> steps_per_unit, std::span<const std::int32_t> zero_point,
                            CodeRange range) noexcept;

namespace scalar {
double linear_distance_run(std::span<const float> x, std::span<const std::uint16_t> codes, double steps_per_unit,
                           std::int32_t zero_point, CodeRange range) noexcept;
double linear_distance_each(std::span<const float> x, std::span<const std::uint16_t> codes,
                            std::span<const double> steps_per_unit, std::span<const std::int32_t> zero_point,
                            CodeRange range) noexcept;
bool quantize_linear_run(std::span<const float> x, float scale, std::int32_t zero_point, CodeRange range,
                         std::span<std::uint16_t> codes) noexcept;
bool quantize_linear_each(std::span<const float> x, std::span<const float> scale,
                          std::span<const std::int32_t> zero_point, CodeRange range,
                          std::span<std::uint16_t> codes) noexcept;
}  // namespace scalar

}  // namespace weightmill
