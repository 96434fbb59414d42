#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <weightmill/model/shape.h>

namespace weightmill {

/// Axis orders in which models keep the weights of a convolution-like layer. I and O are channels per group where the
/// layer is grouped; C counts the input channels of a depthwise layer, M its multiplier.
enum class WeightLayout : std::uint8_t {
  ohwi,           ///< TFLite CONV_2D and TRANSPOSE_CONV: [G * O, kh, kw, I]
  hwc_depthwise,  ///< TFLite DEPTHWISE_CONV_2D: [1, kh, kw, C * M]
  dhwio,          ///< TFLite CONV_3D: [kd, kh, kw, I, O]
  oi,             ///< TFLite FULLY_CONNECTED, ONNX Gemm with transB: [O, I]
  io,             ///< ONNX MatMul and Gemm: [I, O]
  oihw,           ///< ONNX Conv: [G * O, I, kh, kw] or [G * O, I, kd, kh, kw]
  iohw,           ///< ONNX ConvTranspose: [G * I, O, kh, kw] or [G * I, O, kd, kh, kw]
};

/// Where each weight of a layer is in the planner's order, [kh, kw, I, G, O] or [kd, kh, kw, I, G, O].
struct WeightOrder {
  Shape shape;                      ///< the planner's
  std::vector<std::size_t> source;  ///< source[i]: index in the model's order of the planner's weight i
};

/// The order for `n_weights` weights of `shape` in `layout` with `n_groups` groups (of a depthwise layer: its input
/// channels).
/// Throws: bad_request, "E_SHAPE: ...", if the rank does not fit the layout, an extent is below 1, the shape has
/// another number of weights, or the groups do not divide the channels (names `where`).
WeightOrder weight_order(WeightLayout layout, const Shape& shape, std::int64_t n_groups, std::size_t n_weights,
                         std::string_view where);

/// Model order to planner's order. `values`: as many as order.source.
template <class T>
std::vector<T> to_planner(const WeightOrder& order, std::span<const T> values) {
  std::vector<T> result(order.source.size());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = values[order.source[i]];
  return result;
}

/// Planner's order back to the model's.
template <class T>
std::vector<T> to_model(const WeightOrder& order, std::span<const T> values) {
  std::vector<T> result(order.source.size());
  for (std::size_t i = 0; i < result.size(); ++i) result[order.source[i]] = values[i];
  return result;
}

}  // namespace weightmill
