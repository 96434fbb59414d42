#pragma once

#include <cstdint>
#include <span>

namespace weightmill {

// Sweeps over weights whose last axis is the output channel: R rows (taps and input channels) of C channels. Each has
// a scalar twin in namespace `scalar`, which is its definition: every SIMD target gives the same bits.

/// peak_bits[c] = the largest bit pattern of |weight[r, c]| over r. As patterns of non-negative floats are ordered like
/// their values, it is the peak where it is below 0x7f800000; else the channel holds an infinity or a NaN.
/// `weight`: R x C, C = peak_bits.size() > 0.
void channel_peak_bits(std::span<const float> weight, std::span<std::uint32_t> peak_bits) noexcept;

/// quantized[r, c] = round_half_even(weight[r, c] * steps_per_unit[c]), in double, saturated to [-128, 127];
/// sum[c] = the sum of quantized[r, c] over r.
/// `weight`, `quantized`: R x C, C = steps_per_unit.size() = sum.size() > 0. Requires |weight * steps_per_unit| < 2^31.
void quantize_rows(std::span<const float> weight, std::span<const double> steps_per_unit,
                   std::span<std::int8_t> quantized, std::span<std::int64_t> sum) noexcept;

/// As quantize_rows, with quantized[r, c] = round_half_even(weight[r, c] / unit[c]), a true division in double.
void quantize_rows_by_unit(std::span<const float> weight, std::span<const double> unit,
                           std::span<std::int8_t> quantized, std::span<std::int64_t> sum) noexcept;

/// sum[c] = the sum of |weight[r, c]| over r.  `weight`: R x C, each in [-127, 127]; C = sum.size() > 0.
void channel_abs_sums(std::span<const std::int8_t> weight, std::span<std::int64_t> sum) noexcept;

namespace scalar {
void channel_peak_bits(std::span<const float> weight, std::span<std::uint32_t> peak_bits) noexcept;
void quantize_rows(std::span<const float> weight, std::span<const double> steps_per_unit,
                   std::span<std::int8_t> quantized, std::span<std::int64_t> sum) noexcept;
void quantize_rows_by_unit(std::span<const float> weight, std::span<const double> unit,
                           std::span<std::int8_t> quantized, std::span<std::int64_t> sum) noexcept;
void channel_abs_sums(std::span<const std::int8_t> weight, std::span<std::int64_t> sum) noexcept;
}  // namespace scalar

}  // namespace weightmill
