#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weightmill {

/// Which arithmetic turns an accumulator into an output code. The rules differ by one code on ties and near-ties; which
/// engine follows which one is in docs/rounding.md.
enum class Rounding : std::uint8_t {
  folded,            ///< a shift, ties to even; the zero point is part of the bias
  after_shift,       ///< a 7-bit multiplier and a shift, ties to even; then the zero point
  half_up,           ///< a 31-bit multiplier, one rounding, ties up
  half_away,         ///< the same, ties away from zero
  half_even,         ///< the same, ties to even
  gemmlowp_double,   ///< a 31-bit multiplier, two roundings: half up, then ties away from zero
  double_half_up,    ///< the same, both half up
  double_by_eights,  ///< double_half_up for channels in whole blocks of eight, gemmlowp_double for the up to 7 others
  int16x8,           ///< a multiplier cut to 15 bits, 64-bit accumulator, one rounding, ties up; 32 bits of the result
  float_gain,        ///< a float32 gain, ties to even
  double_gain,       ///< a float64 gain, ties away from zero; results outside int32 become its least value
  ethos_u_double,    ///< Ethos-U's 32-bit scale and 6-bit shift, two roundings
  ethos_u_natural,   ///< the same, one rounding, ties up
  openvino,          ///< two float32 steps, ties to even: OpenVINO's convolutions, uint8 codes
  openvino_dense,    ///< the same arithmetic; the steps are those of OpenVINO's matrix products
};

constexpr bool is_openvino(Rounding rule) noexcept {
  return rule == Rounding::openvino || rule == Rounding::openvino_dense;
}

/// The enumerators' names, in their order; one of them; and back, nothing for a word that names no rule.
std::span<const std::string_view> rounding_names() noexcept;
std::string_view name_of(Rounding rule) noexcept;
std::optional<Rounding> rounding_named(std::string_view name) noexcept;

/// x * gain + offset in float32.
struct FloatStep {
  float gain = 1;
  float offset = 0;
};

/// What a rule reads besides the accumulator, one value for each channel: `gain` for float_gain, `wide_gain` for
/// double_gain, `gain` and `offset` for openvino, else `shift`, with a `multiplier` except for folded. Spans that the
/// rule does not read may be empty. `last` is openvino's second step, for all channels. Limits:
/// kernels/rounding_rules.h.
struct RequantLanes {
  std::span<const std::int64_t> multiplier;
  std::span<const std::int32_t> shift;
  std::span<const float> gain;
  std::span<const double> wide_gain;
  std::span<const float> offset = {};
  FloatStep last = {};
};

/// code = clamp(result + zero_point, low, high), where low and high are the output type's limits narrowed by a fused
/// activation. float_gain asks for limits and zero point within +-2^23, openvino for an 8-bit type; it has the zero
/// point in its steps.
struct OutputCodes {
  std::int32_t zero_point = 0;
  std::int32_t type_low = -128, type_high = 127;
  std::int32_t low = -128, high = 127;
};

/// What did not fit on the way.
struct RequantCounts {
  std::uint64_t saturated = 0;  ///< result + zero_point outside the output type's limits
  std::uint64_t wide = 0;       ///< accumulators that no int32 holds
  friend bool operator==(const RequantCounts&, const RequantCounts&) = default;
};

/// Turns accumulators [n_pixels, n_channels] into codes. `lanes` are of n_channels, `codes` as many as `accumulators`.
/// A 64-bit accumulator outside int32 is used whole by int16x8, double_gain, the half_* and the ethos_u_* rules,
/// saturated by folded and after_shift, and wrapped by the others, as the engines that follow them do.
RequantCounts requantize(Rounding rule, const RequantLanes& lanes, const OutputCodes& output,
                         std::span<const std::int32_t> accumulators, std::span<std::int32_t> codes) noexcept;
RequantCounts requantize(Rounding rule, const RequantLanes& lanes, const OutputCodes& output,
                         std::span<const std::int64_t> accumulators, std::span<std::int32_t> codes) noexcept;

/// The same, compiled for the plainest processor: the definition that every SIMD target is held to.
RequantCounts requantize_scalar(Rounding rule, const RequantLanes& lanes, const OutputCodes& output,
                                std::span<const std::int32_t> accumulators, std::span<std::int32_t> codes) noexcept;
RequantCounts requantize_scalar(Rounding rule, const RequantLanes& lanes, const OutputCodes& output,
                                std::span<const std::int64_t> accumulators, std::span<std::int32_t> codes) noexcept;

}  // namespace weightmill
