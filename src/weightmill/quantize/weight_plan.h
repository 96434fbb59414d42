#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <weightmill/model/quantized_weights.h>

namespace weightmill {

/// Weights of a layer whose activations stay in floating point.
struct WeightRequest {
  std::string_view name = "layer";   ///< for messages
  std::span<const float> weight;     ///< row-major, of `weight_shape`
  Shape weight_shape;                ///< [kh, kw, I, G, O] or [kd, kh, kw, I, G, O]
  unsigned bits = 8;                 ///< 8 or 4
  bool per_channel = true;
  std::size_t group_size = 0;        ///< rows that share a scale: a power of two of at least 16; 0: all rows
};

/// Quantizes weights symmetrically:  quantized = round_half_even(weight * steps_per_unit), steps_per_unit = 127 / peak
/// (int4: 7 / peak) of each lane, renorm = float32(1 / steps_per_unit), 1 for a lane without weights.
/// The layer is then  y = bfloat16(sum(x * quantized) * renorm + bias), the sum in float32 and for each group apart.
/// int4 with one scale for the whole tensor is planned with the warning W_INT4_PER_TENSOR.
///
/// Throws: bad_request with a message that begins "E_...: ":
///   E_BITS        bits neither 4 nor 8
///   E_SHAPE       as plan_conv
///   E_GROUP       group_size no power of two of at least 16, or given with per_channel = false
///   E_NOT_FINITE  NaN or infinity in weight
/// Source: docs/quantization.md §7.
QuantizedWeights plan_weights(const WeightRequest& request);

/// Two 4-bit values a byte, the first in the low nibble; an odd last value leaves the high nibble 0.
/// `weight`: each in [-8, 7].  This is how TFLite and ONNX store int4.
std::vector<std::uint8_t> pack_int4(std::span<const std::int8_t> weight);

}  // namespace weightmill
