#include "openvino_steps.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <weightmill/base/error.h>
#include <weightmill/simulate/simulate.h>

namespace weightmill {
namespace {

/// Weights 1, 2, …, one input, of which every channel sees one.
IntegerLayer small_layer(Rounding rounding, std::vector<std::int64_t> bias, DType dtype = DType::u8) {
  IntegerLayer layer;
  layer.name = "small";
  layer.rounding = rounding;
  layer.weight_shape = {1, 1, 1, 1, 2};
  layer.weight = {1, 2};
  layer.geometry = {{1, 1}, {1, 1}, {0, 0}, {0, 0}};
  layer.bias = std::move(bias);
  layer.input_dtype = dtype;
  layer.input_zero_point = dtype == DType::u8 ? 128 : 0;
  set_output(layer, dtype, dtype == DType::u8 ? 128 : 0);
  return layer;
}

TEST(OpenvinoSteps, AConvolutionAddsItsBiasInRealUnits) {
  IntegerLayer layer = small_layer(Rounding::openvino, {3, -4});
  set_scales(layer, 0.5F, std::vector<float>{0.25F, 1.0F}, 2.0F);
  EXPECT_EQ(layer.gain, (std::vector<float>{0.125F, 0.5F}));
  EXPECT_EQ(layer.offset, (std::vector<float>{0.375F, -2.0F}));
  EXPECT_EQ(layer.last.gain, 255.0F / (127 * 2.0F + 256.0F));
  EXPECT_EQ(layer.last.offset, 128.0F);
  EXPECT_TRUE(layer.bias.empty());
}

TEST(OpenvinoSteps, ADenseLayerAddsItsBiasInOutputSteps) {
  IntegerLayer layer = small_layer(Rounding::openvino_dense, {3, -4});
  set_scales(layer, 0.5F, std::vector<float>{0.25F, 1.0F}, 2.0F);
  EXPECT_EQ(layer.gain, (std::vector<float>{0.0625F, 0.25F}));
  EXPECT_EQ(layer.offset, (std::vector<float>{128.1875F, 127.0F}));
  EXPECT_EQ(layer.last.gain, 1.0F);
}

TEST(OpenvinoSteps, OneBiasAndOneScaleGoIntoTheLimits) {
  IntegerLayer layer = small_layer(Rounding::openvino, {3, 3});
  set_scales(layer, 0.5F, std::vector<float>{0.25F}, 2.0F);
  EXPECT_EQ(layer.gain, (std::vector<float>{1.0F, 1.0F}));
  EXPECT_EQ(layer.last.gain, 0.0625F);
  EXPECT_EQ(layer.last.offset, 128.1875F);
}

TEST(OpenvinoSteps, WithoutABiasOneScaleIsFusedAndManyAreNot) {
  for (const std::vector<std::int64_t>& bias : {std::vector<std::int64_t>{}, std::vector<std::int64_t>{0, 0}}) {
    IntegerLayer one = small_layer(Rounding::openvino, bias);
    set_scales(one, 0.5F, std::vector<float>{0.25F, 0.25F}, 2.0F);
    EXPECT_EQ(one.gain, (std::vector<float>{1.0F, 1.0F}));
    EXPECT_EQ(one.last.gain, 0.0625F);
    IntegerLayer many = small_layer(Rounding::openvino, bias);
    set_scales(many, 0.5F, std::vector<float>{0.25F, 1.0F}, 2.0F);
    EXPECT_EQ(many.gain, (std::vector<float>{0.0625F, 0.25F}));
    EXPECT_EQ(many.offset, (std::vector<float>{128.0F, 128.0F}));
    EXPECT_EQ(many.last.gain, 1.0F);
  }
}

TEST(OpenvinoSteps, ADenseLayerWithoutBiasSumsPlainCodes) {
  IntegerLayer layer = small_layer(Rounding::openvino_dense, {});
  set_scales(layer, 0.5F, std::vector<float>{0.25F}, 2.0F);
  EXPECT_EQ(layer.bias, (std::vector<std::int64_t>{128, 256}));
  EXPECT_EQ(layer.offset, (std::vector<float>{120.0F, 112.0F}));
}

std::vector<int> codes_of(Rounding rounding, DType dtype, const std::vector<std::int64_t>& bias) {
  IntegerLayer layer = small_layer(rounding, bias, dtype);
  set_scales(layer, 0.37F, std::vector<float>{0.21F, 0.9F}, 0.41F);
  std::vector<std::uint8_t> input(256);
  for (std::size_t i = 0; i < 256; ++i) input[i] = static_cast<std::uint8_t>(dtype == DType::u8 ? i : i ^ 0x80);
  const Simulation result = simulate(layer, {dtype, {1, 16, 16, 1}, input}, 1);
  std::vector<int> codes;
  for (const std::uint8_t byte : result.bytes) codes.push_back(dtype == DType::u8 ? byte : byte ^ 0x80);
  return codes;
}

TEST(OpenvinoSteps, AnActivationKeepsTheStepsApart) {
  const auto steps_of = [](Rounding rounding, std::vector<std::int64_t> bias, std::int64_t zero_point) {
    IntegerLayer layer = small_layer(rounding, std::move(bias));
    set_output(layer, DType::u8, zero_point);
    set_activation(layer, Activation::relu, activation_codes(LimitRounding::half_even, 2.0F, zero_point));
    set_scales(layer, 0.5F, std::vector<float>{0.25F}, 2.0F);
    return layer;
  };
  EXPECT_EQ(steps_of(Rounding::openvino, {3, 3}, 128).offset, (std::vector<float>{0.375F, 0.375F}));
  EXPECT_EQ(steps_of(Rounding::openvino_dense, {3, -4}, 128).gain, (std::vector<float>{0.125F, 0.125F}));
  const IntegerLayer no_bias = steps_of(Rounding::openvino_dense, {}, 128);
  EXPECT_EQ(no_bias.offset, (std::vector<float>{0.0F, 0.0F}));
  EXPECT_TRUE(no_bias.bias.empty());
  EXPECT_EQ(no_bias.last.offset, 128.0F);
  EXPECT_EQ(steps_of(Rounding::openvino, {}, 128).last.gain, 0.0625F) << "a scale passes through ReLU";
  EXPECT_EQ(steps_of(Rounding::openvino, {3, 3}, 0).offset, (std::vector<float>{0.0F, 0.0F})) << "ReLU does nothing";
}

TEST(OpenvinoSteps, Int8CodesAreUint8CodesLess128) {
  for (const Rounding rounding : {Rounding::openvino, Rounding::openvino_dense}) {
    EXPECT_EQ(codes_of(rounding, DType::i8, {}), codes_of(rounding, DType::u8, {}));
    EXPECT_EQ(codes_of(rounding, DType::i8, {7, -9}), codes_of(rounding, DType::u8, {7, -9}));
  }
}

TEST(OpenvinoSteps, RefusesWhatOpenvinoDoesNotRunInIntegers) {
  IntegerLayer wide = small_layer(Rounding::openvino, {});
  set_output(wide, DType::i16, 0);
  EXPECT_THROW(set_scales(wide, 1.0F, std::vector<float>{1.0F}, 1.0F), Error);
  IntegerLayer far = small_layer(Rounding::openvino, {1, 1});
  EXPECT_THROW(set_scales(far, 1.0F, std::vector<float>{1.0F}, 3e38F), Error) << "the output's limits are infinite";
  IntegerLayer bare = small_layer(Rounding::openvino, {});
  bare.gain = {1.0F, 1.0F};
  EXPECT_THROW(Simulator{bare}, Error) << "no offsets";
  bare.offset = {0.0F, 0.0F};
  EXPECT_NO_THROW(Simulator{bare});
  bare.gain[1] = 0x1p97F;
  EXPECT_THROW(Simulator{bare}, Error) << "an infinite first step times a last gain of 0 is no number";
}

}  // namespace
}  // namespace weightmill
