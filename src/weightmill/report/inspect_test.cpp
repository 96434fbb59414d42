#include "inspect.h"

#include <gtest/gtest.h>

namespace weightmill {
namespace {

Model one_layer(DType dtype, const std::vector<std::uint8_t>& bytes, Shape shape) {
  Model model;
  model.path = "folder/net.tflite";
  Subgraph& subgraph = model.subgraphs.emplace_back();
  subgraph.tensors.resize(2);
  subgraph.tensors[0].dtype = DType::i8;
  Tensor& weights = subgraph.tensors[1];
  weights.name = "w", weights.dtype = dtype, weights.shape = std::move(shape), weights.data = bytes,
  weights.constant = true;
  weights.quantization = {{0.5f}, {0}, 0};
  Node& node = subgraph.nodes.emplace_back();
  node.kind = OpKind::fully_connected, node.op_name = "FULLY_CONNECTED", node.inputs = {0, 1, -1};
  return model;
}

TEST(Inspect, CountsZerosDistinctValuesAndEntropy) {
  const std::vector<std::uint8_t> bytes{0, 0, 1, 255};
  const auto report = inspect(one_layer(DType::i8, bytes, {1, 4}));
  EXPECT_EQ(report.file, "net.tflite");
  ASSERT_EQ(report.rows.size(), 1u);
  EXPECT_EQ(report.rows[0].n_zero_weights, 2);
  EXPECT_EQ(report.rows[0].n_distinct, 3);
  EXPECT_DOUBLE_EQ(report.rows[0].entropy_bits, 1.5);
}

TEST(Inspect, LeavesTheFillingHalfByteOut) {
  const std::vector<std::uint8_t> bytes{0x11, 0x01};
  const auto report = inspect(one_layer(DType::i4, bytes, {1, 3}));
  EXPECT_EQ(report.rows[0].n_distinct, 1);
  EXPECT_EQ(report.rows[0].n_zero_weights, 0);
}

TEST(Inspect, SaysNothingOfFloats) {
  const std::vector<std::uint8_t> bytes(16, 0);
  const auto json = to_json(inspect(one_layer(DType::f32, bytes, {1, 4})));
  EXPECT_EQ(json.at("weights")[0].at("entropy_bits"), -1.0);
  EXPECT_EQ(json.at("weights")[0].at("dtype"), "float32");
}

}  // namespace
}  // namespace weightmill
