#include "model_weights.h"

#include <gtest/gtest.h>

namespace weightmill::verify {
namespace {

/// A model of one constant tensor of int8.
Model model_of(Shape shape, const std::vector<std::uint8_t>& bytes, DType dtype = DType::i8) {
  Tensor tensor;
  tensor.name = "w";
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.data = bytes;
  tensor.constant = true;
  Model model;
  model.subgraphs.emplace_back().tensors.push_back(tensor);
  return model;
}

PackedLayer layer_of(OpKind kind, std::array<int, 4> ohwi) {
  PackedLayer layer;
  layer.kind = kind;
  layer.ohwi = ohwi;
  layer.weights_tensor = 0;
  return layer;
}

TEST(ModelWeights, SubtractTheZeroPointOfTheirChannel) {
  const std::vector<std::uint8_t> bytes{0, 255, 10, 20};
  Model model = model_of({2, 2}, bytes, DType::u8);
  model.subgraphs[0].tensors[0].quantization = {{1.0f, 1.0f}, {255, 5}, 0};
  const auto weights = weights_of(layer_of(OpKind::fully_connected, {2, 1, 1, 2}), model);
  EXPECT_EQ(weights.problem, "");
  EXPECT_EQ(weights.values, (std::vector<std::int16_t>{-255, 0, 5, 15}));
}

TEST(ModelWeights, DepthwiseTensorsHaveTheirChannelsLast) {
  const std::vector<std::uint8_t> bytes{1, 2, 3, 4, 5, 6};
  const auto weights = weights_of(layer_of(OpKind::depthwise_conv_2d, {3, 1, 2, 1}), model_of({1, 1, 2, 3}, bytes));
  EXPECT_EQ(weights.values, (std::vector<std::int16_t>{1, 4, 2, 5, 3, 6}));
}

TEST(ModelWeights, TransposedConvolutionsAreFlipped) {
  const std::vector<std::uint8_t> bytes{1, 2, 3, 4};
  const auto weights = weights_of(layer_of(OpKind::transpose_conv_2d, {1, 2, 2, 1}), model_of({1, 2, 2, 1}, bytes));
  EXPECT_EQ(weights.values, (std::vector<std::int16_t>{4, 3, 2, 1}));
}

TEST(ModelWeights, FourBitWeightsComeLowHalfFirst) {
  const std::vector<std::uint8_t> bytes{0x7f, 0x08};
  const auto weights = weights_of(layer_of(OpKind::fully_connected, {1, 1, 1, 3}), model_of({1, 3}, bytes, DType::i4));
  EXPECT_EQ(weights.values, (std::vector<std::int16_t>{-1, 7, -8}));
}

TEST(ModelWeights, SayWhatDoesNotFit) {
  const std::vector<std::uint8_t> bytes{1, 2, 3, 4};
  const auto problem = [&](PackedLayer layer, Shape shape, DType dtype) {
    return weights_of(layer, model_of(std::move(shape), bytes, dtype)).problem;
  };
  EXPECT_NE(problem(layer_of(OpKind::conv_2d, {1, 2, 2, 1}), {1, 2, 2}, DType::i8), "");
  EXPECT_NE(problem(layer_of(OpKind::conv_2d, {1, 2, 2, 1}), {2, 2, 1, 1}, DType::i8), "");
  EXPECT_NE(problem(layer_of(OpKind::conv_2d, {1, 1, 1, 1}), {1, 1, 1, 1}, DType::f32), "");
  EXPECT_NE(problem(layer_of(OpKind::conv_2d, {5, 1, 1, 1}), {5, 1, 1, 1}, DType::i8), "") << "more weights than bytes";
  PackedLayer elsewhere = layer_of(OpKind::conv_2d, {1, 2, 2, 1});
  elsewhere.weights_tensor = 7;
  EXPECT_NE(problem(elsewhere, {1, 2, 2, 1}, DType::i8), "");
}

TEST(ModelBiases, AreZeroWithoutATensor) {
  EXPECT_EQ(biases_of(layer_of(OpKind::conv_2d, {3, 1, 1, 1}), Model{}).values, (std::vector<std::int64_t>{0, 0, 0}));
}

TEST(ModelBiases, ReadBothWidths) {
  const std::vector<std::uint8_t> bytes{1, 0, 0, 0, 255, 255, 255, 255};
  PackedLayer layer = layer_of(OpKind::conv_2d, {2, 1, 1, 1});
  layer.bias_tensor = 0;
  EXPECT_EQ(biases_of(layer, model_of({2}, bytes, DType::i32)).values, (std::vector<std::int64_t>{1, -1}));
  layer.ohwi[0] = 1;
  EXPECT_EQ(biases_of(layer, model_of({1}, bytes, DType::i64)).values, (std::vector<std::int64_t>{-4294967295}));
  EXPECT_NE(biases_of(layer, model_of({2}, bytes, DType::i32)).problem, "");
}

}  // namespace
}  // namespace weightmill::verify
