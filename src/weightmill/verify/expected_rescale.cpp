#include "expected_rescale.h"

#include <bit>
#include <cstdint>

namespace weightmill::verify {
namespace {

/// Fused sigmoid and tanh are scaled to steps of 1/0x3000, whatever the output tensor says.
constexpr double kActivationSteps = 0x3000;

/// The real factor from accumulator to output steps, in the precision that the rule uses at each step.
double real_rescale(const PackedLayer& layer, float weight_scale) {
  const bool byte_unsigned = layer.ifm_dtype == DType::u8;
  const bool vector_product = layer.block_type == NpuBlockType::vector_product;
  const bool single = byte_unsigned || (layer.scaling != ScalingRule::v2020 && vector_product);
  const float product = layer.ifm_scale * weight_scale;
  if (layer.rescaled_for_activation) {
    if (single) return static_cast<double>(product) * kActivationSteps;
    return static_cast<double>(layer.ifm_scale) * kActivationSteps * static_cast<double>(weight_scale);
  }
  const double exact = static_cast<double>(layer.ifm_scale) * static_cast<double>(weight_scale);
  return (single ? static_cast<double>(product) : exact) / static_cast<double>(layer.ofm_scale);
}

bool is_reduced(const PackedLayer& layer, bool bias_is_64_bit) {
  if (layer.scaling == ScalingRule::regor)
    return layer.record_format == RecordFormat::bias48_scale15 || (layer.ifm_dtype == DType::i16 && bias_is_64_bit);
  return layer.ifm_dtype == DType::i16 && (layer.scaling == ScalingRule::v2020 || bias_is_64_bit);
}

/// The 16 leading bits, at most 32767: for 48-bit accumulators, which leave no room for more.
FixedPoint reduced(FixedPoint full) {
  const std::int64_t rounded = (full.multiplier + (std::int64_t{1} << 15)) >> 16;
  return {rounded > 32767 ? 32767 : rounded, full.shift - 16};
}

/// Vela's Python: a shift that the record cannot hold makes the channel a constant.
FixedPoint limited(FixedPoint full) { return full.shift < 0 || full.shift > 63 ? FixedPoint{0, 16} : full; }

/// Regor: moves bits between multiplier and shift while any are left.
FixedPoint repaired(FixedPoint f) {
  if (f.shift > 63) {
    const int excess = f.shift - 63;
    const bool survives = excess < 31 && f.multiplier > (std::int64_t{1} << excess);
    return survives ? FixedPoint{f.multiplier >> excess, 63} : FixedPoint{0, 0};
  }
  if (f.shift < 0) {
    const int room = f.shift + 32;
    const bool fits = room > 0 && f.multiplier < (std::int64_t{1} << room);
    return fits ? FixedPoint{f.multiplier << -f.shift, 0} : f;
  }
  return f;
}

}  // namespace

FixedPoint leading_bits(double x) {
  if (x == 0) return {0, 31};
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  if (exponent == 0) {
    // A subnormal: bring its first digit to the place that a normal number's has.
    const int n_missing = std::countl_zero(fraction) - 11;
    fraction <<= n_missing;
    exponent = 1 - n_missing;
  } else {
    fraction |= std::uint64_t{1} << 52;
  }
  // x = fraction * 2^(exponent - 1075) with 53 digits; 31 of them stay.
  const auto multiplier = static_cast<std::int64_t>((fraction + (std::uint64_t{1} << 21)) >> 22);
  return {multiplier, 1053 - exponent};
}

FixedPoint expected_rescale(const PackedLayer& layer, float weight_scale, bool bias_is_64_bit) {
  const FixedPoint full = leading_bits(real_rescale(layer, weight_scale));
  const bool reduce = is_reduced(layer, bias_is_64_bit);
  if (layer.scaling == ScalingRule::regor) return repaired(reduce ? reduced(full) : full);
  const FixedPoint held = limited(full);
  return reduce ? reduced(held) : held;
}

}  // namespace weightmill::verify
