#include "model_weights.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace weightmill::verify {
namespace {

/// Element `index` of an integer tensor; 4-bit elements lie two to a byte, the first in the low half.
std::int64_t integer_at(const Tensor& tensor, std::size_t index) {
  const std::uint8_t* bytes = tensor.data.data();
  const auto wide = [&]<class T>(T value) {
    std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
    return static_cast<std::int64_t>(value);
  };
  switch (tensor.dtype) {
    case DType::u8:
      return bytes[index];
    case DType::i8:
      return static_cast<std::int8_t>(bytes[index]);
    case DType::i16:
      return wide(std::int16_t{});
    case DType::i32:
      return wide(std::int32_t{});
    case DType::i64:
      return wide(std::int64_t{});
    case DType::i4: {
      const unsigned nibble = index % 2 == 0 ? bytes[index / 2] & 15u : bytes[index / 2] >> 4;
      return static_cast<std::int64_t>(nibble) - (nibble >= 8 ? 16 : 0);
    }
    default:
      return 0;
  }
}

bool is_readable_integer(DType dtype) {
  return dtype == DType::i4 || dtype == DType::i8 || dtype == DType::u8 || dtype == DType::i16 || dtype == DType::i32 ||
         dtype == DType::i64;
}

/// Elements that are really there: never more than the shape says or the bytes hold.
std::size_t n_stored(const Tensor& tensor) {
  const std::size_t in_bytes = tensor.data.size() * 8 / std::max(1u, size_bits(tensor.dtype));
  std::size_t in_shape = 1;
  for (const std::int64_t extent : tensor.shape) {
    if (extent < 0 || __builtin_mul_overflow(in_shape, static_cast<std::size_t>(extent), &in_shape)) return 0;
  }
  return std::min(in_bytes, in_shape);
}

/// OHWI extents of the layer's tensor, or nothing if it does not have the rank its operator needs.
std::optional<std::array<int, 4>> ohwi_of(const PackedLayer& layer, const Tensor& tensor) {
  const Shape& shape = tensor.shape;
  if (std::any_of(shape.begin(), shape.end(),
                  [](std::int64_t e) { return e < 1 || e > std::numeric_limits<int>::max(); })) {
    return std::nullopt;
  }
  const auto at = [&](std::size_t axis) { return static_cast<int>(shape[axis]); };
  if (layer.kind == OpKind::depthwise_conv_2d) {
    if (shape.size() != 4 || shape[0] != 1) return std::nullopt;
    return std::array<int, 4>{at(3), at(1), at(2), 1};
  }
  if (shape.size() == 4) return std::array<int, 4>{at(0), at(1), at(2), at(3)};
  if (shape.size() == 2) return std::array<int, 4>{at(0), 1, 1, at(1)};
  return std::nullopt;
}

/// Where weight (o, y, x, i) lies in the model's tensor.
std::size_t source_index(const PackedLayer& layer, const std::array<int, 4>& ohwi, int o, int y, int x, int i) {
  const auto [n_o, n_y, n_x, n_i] = ohwi;
  const int row = layer.kind == OpKind::transpose_conv_2d ? n_y - 1 - y : y;
  const int column = layer.kind == OpKind::transpose_conv_2d ? n_x - 1 - x : x;
  if (layer.kind == OpKind::depthwise_conv_2d) {
    return (static_cast<std::size_t>(row) * static_cast<std::size_t>(n_x) + static_cast<std::size_t>(column)) *
               static_cast<std::size_t>(n_o) +
           static_cast<std::size_t>(o);
  }
  return ((static_cast<std::size_t>(o) * static_cast<std::size_t>(n_y) + static_cast<std::size_t>(row)) *
              static_cast<std::size_t>(n_x) +
          static_cast<std::size_t>(column)) *
             static_cast<std::size_t>(n_i) +
         static_cast<std::size_t>(i);
}

std::int64_t zero_point_of(const Affine& affine, int o) {
  if (affine.zero_point.empty()) return 0;
  return affine.zero_point.size() == 1 ? affine.zero_point[0] : affine.zero_point[static_cast<std::size_t>(o)];
}

/// What keeps the tensor from being compared; empty if nothing does.
std::string weights_problem(const Tensor* tensor, const PackedLayer& layer) {
  if (tensor == nullptr)
    return fmt::format("the model has no tensor {} in subgraph {}", layer.weights_tensor, layer.subgraph);
  if (!tensor->constant) return fmt::format("tensor '{}' is no constant in the model", tensor->name);
  if (!is_readable_integer(tensor->dtype))
    return fmt::format("tensor '{}' is {} in the model", tensor->name, name_of(tensor->dtype));
  const auto ohwi = ohwi_of(layer, *tensor);
  if (!ohwi) return fmt::format("tensor '{}' has shape {} in the model", tensor->name, to_string(tensor->shape));
  if (*ohwi != layer.ohwi) {
    return fmt::format("tensor '{}' is {}x{}x{}x{} (OHWI) in the model, {}x{}x{}x{} as packed", tensor->name,
                       (*ohwi)[0], (*ohwi)[1], (*ohwi)[2], (*ohwi)[3], layer.ohwi[0], layer.ohwi[1], layer.ohwi[2],
                       layer.ohwi[3]);
  }
  const std::size_t n_points = tensor->quantization.zero_point.size();
  if (n_points > 1 && n_points != static_cast<std::size_t>((*ohwi)[0])) {
    return fmt::format("tensor '{}' has {} zero points for {} output channels", tensor->name, n_points, (*ohwi)[0]);
  }
  std::size_t n = 1;
  for (const int extent : *ohwi) n *= static_cast<std::size_t>(extent);
  if (n_stored(*tensor) != n)
    return fmt::format("tensor '{}' holds {} of {} weights", tensor->name, n_stored(*tensor), n);
  return "";
}

}  // namespace

const Tensor* tensor_of(const PackedLayer& layer, const Model& model, int number) {
  if (layer.subgraph < 0 || static_cast<std::size_t>(layer.subgraph) >= model.subgraphs.size()) return nullptr;
  const auto& tensors = model.subgraphs[static_cast<std::size_t>(layer.subgraph)].tensors;
  if (number < 0 || static_cast<std::size_t>(number) >= tensors.size()) return nullptr;
  return &tensors[static_cast<std::size_t>(number)];
}

ModelWeights weights_of(const PackedLayer& layer, const Model& model) {
  ModelWeights weights;
  const Tensor* tensor = tensor_of(layer, model, layer.weights_tensor);
  weights.problem = weights_problem(tensor, layer);
  if (!weights.problem.empty()) return weights;
  weights.ohwi = layer.ohwi;
  const auto [n_o, n_y, n_x, n_i] = weights.ohwi;
  for (int o = 0; o < n_o; ++o) {
    const std::int64_t zero_point = zero_point_of(tensor->quantization, o);
    for (int y = 0; y < n_y; ++y) {
      for (int x = 0; x < n_x; ++x) {
        for (int i = 0; i < n_i; ++i) {
          const std::int64_t value = integer_at(*tensor, source_index(layer, weights.ohwi, o, y, x, i)) - zero_point;
          weights.values.push_back(static_cast<std::int16_t>(value));
        }
      }
    }
  }
  return weights;
}

ModelBiases biases_of(const PackedLayer& layer, const Model& model) {
  ModelBiases biases;
  biases.values.assign(static_cast<std::size_t>(std::max(0, layer.ohwi[0])), 0);
  if (layer.bias_tensor < 0) return biases;
  const Tensor* tensor = tensor_of(layer, model, layer.bias_tensor);
  if (tensor == nullptr || !tensor->constant || (tensor->dtype != DType::i32 && tensor->dtype != DType::i64)) {
    biases.problem = fmt::format("the model has no constant int32 or int64 bias as tensor {}", layer.bias_tensor);
  } else if (n_stored(*tensor) != biases.values.size()) {
    biases.problem = fmt::format("bias '{}' holds {} values for {} output channels", tensor->name, n_stored(*tensor),
                                 biases.values.size());
  } else {
    for (std::size_t o = 0; o < biases.values.size(); ++o) biases.values[o] = integer_at(*tensor, o);
  }
  return biases;
}

}  // namespace weightmill::verify
