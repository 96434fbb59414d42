#include "weight_layout.h"

#include <numeric>

#include <gtest/gtest.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

std::vector<int> iota(int n) {
  std::vector<int> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

std::vector<int> ordered(const WeightOrder& order) {
  const auto values = iota(static_cast<int>(order.source.size()));
  return to_planner<int>(order, values);
}

TEST(WeightOrder, TurnsDenseAndConvolutionWeights) {
  const auto dense = weight_order(WeightLayout::oi, {2, 3}, 1, 6, "fc");
  EXPECT_EQ(dense.shape, (Shape{1, 1, 3, 1, 2}));
  EXPECT_EQ(ordered(dense), (std::vector<int>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(ordered(weight_order(WeightLayout::io, {3, 2}, 1, 6, "fc")), iota(6));
  const auto tflite = weight_order(WeightLayout::ohwi, {2, 1, 2, 2}, 1, 8, "conv");
  EXPECT_EQ(tflite.shape, (Shape{1, 2, 2, 1, 2}));
  EXPECT_EQ(ordered(tflite), (std::vector<int>{0, 4, 1, 5, 2, 6, 3, 7}));
  const auto onnx = weight_order(WeightLayout::oihw, {2, 2, 1, 2}, 1, 8, "conv");
  EXPECT_EQ(ordered(onnx), (std::vector<int>{0, 4, 2, 6, 1, 5, 3, 7}));
}

TEST(WeightOrder, SplitsGroups) {
  const auto grouped = weight_order(WeightLayout::ohwi, {4, 1, 1, 3}, 2, 12, "conv");
  EXPECT_EQ(grouped.shape, (Shape{1, 1, 3, 2, 2}));
  EXPECT_EQ(ordered(grouped), (std::vector<int>{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}));
  const auto depthwise = weight_order(WeightLayout::hwc_depthwise, {1, 1, 2, 6}, 3, 12, "dw");
  EXPECT_EQ(depthwise.shape, (Shape{1, 2, 1, 3, 2}));
  EXPECT_EQ(ordered(depthwise), iota(12));
  const auto transposed = weight_order(WeightLayout::iohw, {4, 2, 1, 1}, 2, 8, "tconv");
  EXPECT_EQ(transposed.shape, (Shape{1, 1, 2, 2, 2}));  // [kh, kw, I, G, O]
  EXPECT_EQ(ordered(transposed), (std::vector<int>{0, 1, 4, 5, 2, 3, 6, 7}));
}

TEST(WeightOrder, KnowsThreeDimensions) {
  EXPECT_EQ(weight_order(WeightLayout::oihw, {4, 3, 2, 5, 6}, 1, 720, "conv").shape, (Shape{2, 5, 6, 3, 1, 4}));
  EXPECT_EQ(weight_order(WeightLayout::dhwio, {2, 5, 6, 3, 4}, 1, 720, "conv").shape, (Shape{2, 5, 6, 3, 1, 4}));
}

TEST(WeightOrder, GoesBack) {
  const auto order = weight_order(WeightLayout::iohw, {6, 5, 2, 3}, 3, 180, "tconv");
  EXPECT_EQ(to_model<int>(order, ordered(order)), iota(180));
}

TEST(WeightOrder, RefusesWhatDoesNotFit) {
  EXPECT_THROW(weight_order(WeightLayout::ohwi, {2, 3}, 1, 6, "w"), Error);
  EXPECT_THROW(weight_order(WeightLayout::oi, {2, 0}, 1, 0, "w"), Error);
  EXPECT_THROW(weight_order(WeightLayout::oi, {2, 3}, 1, 7, "w"), Error);
  EXPECT_THROW(weight_order(WeightLayout::oi, {1LL << 40, 1LL << 40}, 1, 7, "w"), Error);
  EXPECT_THROW(weight_order(WeightLayout::ohwi, {3, 1, 1, 2}, 2, 6, "w"), Error);
  EXPECT_THROW(weight_order(WeightLayout::ohwi, {3, 1, 1, 2}, 0, 6, "w"), Error);
  EXPECT_THROW(weight_order(WeightLayout::hwc_depthwise, {2, 1, 1, 2}, 2, 4, "w"), Error);
}

}  // namespace
}  // namespace weightmill
