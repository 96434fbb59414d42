#include "layer_source.h"

#include <functional>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weightmill/base/error.h>
#include "model_builder.h"

namespace weightmill {
namespace {

using pack_testing::ModelBuilder;
using testing::HasSubstr;

/// Why the only operator of `builder` is not packed; "" if it is.
std::string reason_of(const ModelBuilder& builder, ScalingRule rule = ScalingRule::vela5) {
  const auto found = find_layers(builder.model(), rule);
  EXPECT_EQ(found.size(), 1u);
  if (const auto* obstacle = std::get_if<NotPacked>(&found.front())) return obstacle->reason;
  return "";
}

TEST(LayerSource, SaysWhyAnOperatorIsNotPacked) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::pair<std::string, std::function<void(ModelBuilder&)>>> cases{
      {"", [](ModelBuilder&) {}},
      {"weights are float32", [](ModelBuilder& b) { b.input(1).dtype = DType::f32; }},
      {"weights are int64", [](ModelBuilder& b) { b.input(1).dtype = DType::i64; }},
      {"dynamic-range", [](ModelBuilder& b) { b.input(0).dtype = DType::f32; }},
      {"feature map is int32", [](ModelBuilder& b) { b.input(0).dtype = DType::i32; }},
      {"run time", [](ModelBuilder& b) { b.input(1).constant = false; }},
      {"no weights", [](ModelBuilder& b) { b.graph().nodes.back().inputs[1] = -1; }},
      {"no feature map", [](ModelBuilder& b) { b.graph().nodes.back().inputs[0] = -1; }},
      {"wanted 4 extents", [](ModelBuilder& b) { b.input(1).shape = {8, 36}; }},
      {"grouped", [](ModelBuilder& b) { b.input(0).shape = {1, 8, 8, 16}; }},
      {"dilation 4x1", [](ModelBuilder& b) { b.graph().nodes.back().conv.dilation_h = 4; }},
      {"strides 0x1", [](ModelBuilder& b) { b.graph().nodes.back().conv.stride_h = 0; }},
      {"3 weight scales for 8", [](ModelBuilder& b) { b.input(1).quantization.scale = {1, 1, 1}; }},
      {"along axis 3",
       [](ModelBuilder& b) { b.input(1).quantization.scale.assign(8, 1), b.input(1).quantization.axis = 3; }},
      {"scale 0 of channel 0", [](ModelBuilder& b) { b.input(1).quantization.scale = {0}; }},
      {"feature map has scale -1", [](ModelBuilder& b) { b.input(0).quantization.scale = {-1}; }},
      {"output has scale nan", [nan](ModelBuilder& b) { b.output().quantization.scale = {nan}; }},
      {"5 weight zero points", [](ModelBuilder& b) { b.input(1).quantization.zero_point.assign(5, 0); }},
      {"bias is computed", [](ModelBuilder& b) { b.input(2).constant = false; }},
      {"bias is float32", [](ModelBuilder& b) { b.input(2).dtype = DType::f32; }},
      {"7 biases for 8", [](ModelBuilder& b) { b.input(2).shape = {7}; }},
  };
  for (const auto& [wanted, change] : cases) {
    ModelBuilder builder;
    builder.conv(8, 3, 3, 4);
    change(builder);
    if (wanted.empty()) {
      EXPECT_EQ(reason_of(builder), "");
    } else {
      EXPECT_THAT(reason_of(builder), HasSubstr(wanted));
    }
  }
}

TEST(LayerSource, RefusesModelsThatContradictThemselves) {
  const std::vector<std::function<void(ModelBuilder&)>> cases{
      [](ModelBuilder& b) { b.graph().nodes.back().inputs[1] = 99; },
      [](ModelBuilder& b) { b.graph().nodes.back().outputs[0] = -7; },
      [](ModelBuilder& b) { b.input(1).data = b.input(1).data.first(10); },
      [](ModelBuilder& b) { b.input(2).data = b.input(2).data.first(10); },
      [](ModelBuilder& b) { b.input(1).quantization.zero_point = {200}; },
  };
  for (const auto& change : cases) {
    ModelBuilder builder;
    builder.conv(8, 3, 3, 4);
    change(builder);
    EXPECT_THROW(find_layers(builder.model(), ScalingRule::vela5), Error);
  }
}

TEST(LayerSource, AMissingScaleIsOneUnderVela5AndAnObstacleElsewhere) {
  ModelBuilder builder;
  builder.conv(8, 1, 1, 4);
  builder.output().quantization = {};
  EXPECT_EQ(reason_of(builder), "");
  EXPECT_THAT(reason_of(builder, ScalingRule::v2020), HasSubstr("no quantization"));
  EXPECT_THAT(reason_of(builder, ScalingRule::regor), HasSubstr("no quantization"));
}

TEST(LayerSource, NamesConvolutionsInThreeDimensionsAndForeignOperators) {
  ModelBuilder three;
  three.conv(8, 3, 3, 4).kind = OpKind::conv_3d;
  EXPECT_THAT(reason_of(three), HasSubstr("two dimensions"));
  ModelBuilder matmul;
  Node& node = matmul.conv(8, 3, 3, 4);
  node.kind = OpKind::other;
  node.op_name = "BATCH_MATMUL";
  EXPECT_THAT(reason_of(matmul), HasSubstr("no operation"));
  node.op_name = "ADD";
  EXPECT_TRUE(find_layers(matmul.model(), ScalingRule::vela5).empty());
}

TEST(LayerSource, ADepthwiseConvolutionOfOneChannelIsAConvolution) {
  const auto source_of = [](int n_ifm, int multiplier) {
    ModelBuilder b;
    const int x = b.tensor("ifm", DType::i8, {1, 8, 8, n_ifm});
    const int w = b.fill_randomly(b.tensor("weights", DType::i8, {1, 3, 3, n_ifm * multiplier}, {0.1f}, {0}, 3), 4);
    const int y = b.tensor("ofm", DType::i8, {1, 8, 8, n_ifm * multiplier});
    b.node(OpKind::depthwise_conv_2d, "DEPTHWISE_CONV_2D", {x, w, b.bias(n_ifm * multiplier)}, {y})
        .conv.depth_multiplier = multiplier;
    return find_layers(b.model(), ScalingRule::vela5).front();
  };
  EXPECT_EQ(std::get<LayerSource>(source_of(6, 1)).layer.block_type, NpuBlockType::depthwise);
  EXPECT_EQ(std::get<LayerSource>(source_of(1, 6)).layer.block_type, NpuBlockType::convolution);
  EXPECT_THAT(std::get<NotPacked>(source_of(2, 3)).reason, HasSubstr("depth multipliers"));
}

TEST(LayerSource, WidensFourBitWeightsAndSubtractsChannelsZeroPoints) {
  ModelBuilder b;
  b.conv(2, 1, 1, 3, 1, DType::i8, DType::i4);
  b.fill(b.graph().nodes.back().inputs[1], {0x8f, 0x17, 0xe2});  // -1, -8, 7, 1, 2, -2
  b.input(1).quantization.zero_point = {0, 1};
  b.input(1).quantization.scale = {0.1f, 0.1f};
  const auto found = find_layers(b.model(), ScalingRule::vela5);
  const LayerWeights weights = weights_of(std::get<LayerSource>(found.front()));
  const auto values = std::get<std::span<const std::int16_t>>(weights.volume.values);
  EXPECT_EQ(std::vector(values.begin(), values.end()), (std::vector<std::int16_t>{-1, -8, 7, 0, 1, -3}));
}

TEST(LayerSource, TakesAnLstmMatrixByMatrix) {
  ModelBuilder b;
  std::vector<int> inputs{b.tensor("x", DType::i8, {1, 5, 7})};
  for (int k = 0; k < 8; ++k) inputs.push_back(b.fill_randomly(b.tensor("w", DType::i8, {6, k < 4 ? 7 : 6}), 3));
  inputs.resize(12, -1);
  for (int k = 0; k < 4; ++k) inputs.push_back(b.bias(6));
  inputs.resize(18, -1);
  inputs.push_back(b.tensor("state", DType::i8, {1, 6}, {0.03f}));
  inputs.resize(24, -1);
  b.node(OpKind::unidirectional_sequence_lstm, "UNIDIRECTIONAL_SEQUENCE_LSTM", inputs,
         {b.tensor("y", DType::i8, {1, 5, 6})});
  const auto found = find_layers(b.model(), ScalingRule::vela5);
  ASSERT_EQ(found.size(), 8u);
  const auto& first = std::get<LayerSource>(found[0]);
  const auto& last = std::get<LayerSource>(found[7]);
  EXPECT_EQ(first.layer.role, "input_to_input");
  EXPECT_EQ(first.layer.ohwi, (std::array{6, 1, 1, 7}));
  EXPECT_EQ(first.bias[2], 102);
  EXPECT_EQ(last.layer.role, "recurrent_to_output");
  EXPECT_EQ(last.layer.ifm_scale, 0.03f);
  EXPECT_EQ(last.layer.ofm_scale, 0x1p-12f);
  EXPECT_EQ(last.bias[2], 0);
}

TEST(LayerSource, ListsWhatAnLstmHasBesidesItsMatrices) {
  ModelBuilder b;
  std::vector<int> inputs{b.tensor("x", DType::i8, {1, 5, 7})};
  for (int k = 0; k < 8; ++k) inputs.push_back(b.fill_randomly(b.tensor("w", DType::i8, {6, k < 4 ? 7 : 6}), 3));
  inputs.push_back(b.fill_randomly(b.tensor("peephole", DType::i16, {6}), 4));
  inputs.resize(12, -1);
  for (int k = 0; k < 4; ++k) inputs.push_back(b.bias(6));
  inputs.push_back(b.fill_randomly(b.tensor("projection", DType::i8, {6, 6}), 5));
  inputs.resize(18, -1);
  inputs.push_back(b.tensor("state", DType::i8, {1, 6}, {0.03f}));
  inputs.resize(24, -1);
  b.node(OpKind::lstm, "LSTM", inputs, {b.tensor("y", DType::i8, {1, 5, 6})});
  const auto found = find_layers(b.model(), ScalingRule::vela5);
  ASSERT_EQ(found.size(), 10u);
  EXPECT_EQ(std::get<NotPacked>(found[8]).tensor, "peephole");
  EXPECT_THAT(std::get<NotPacked>(found[9]).reason, HasSubstr("projection"));
}

TEST(LayerSource, TakesAnSvdfsMatricesWhereTheyFit) {
  ModelBuilder b;
  const int x = b.tensor("x", DType::i8, {1, 7});
  const int feature = b.fill_randomly(b.tensor("feature", DType::i8, {4, 7}), 3);
  const int time = b.fill(b.tensor("time", DType::i16, {4, 2}), std::vector<std::uint8_t>(16, 0x7f));
  const int state = b.tensor("state", DType::i16, {1, 8});
  b.node(OpKind::svdf, "SVDF", {x, feature, time, b.bias(4), state}, {b.tensor("y", DType::i8, {1, 4})});
  auto found = find_layers(b.model(), ScalingRule::vela5);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(std::get<LayerSource>(found[0]).layer.role, "feature");
  EXPECT_THAT(std::get<NotPacked>(found[1]).reason, HasSubstr("-255..255"));
  b.fill(time, {1, 0, 255, 255, 255, 0, 1, 255, 0, 0, 0, 0, 0, 0, 0, 0});
  found = find_layers(b.model(), ScalingRule::vela5);
  EXPECT_EQ(std::get<LayerSource>(found[1]).layer.ifm_dtype, DType::i16);
}

}  // namespace
}  // namespace weightmill
