#include "layer.h"

#include <cmath>

#include <gtest/gtest.h>

#include <weightmill/base/error.h>

#include "testkit/random.h"

namespace weightmill {
namespace {

IntegerLayer dense_layer(Rounding rounding, std::int64_t n_channels) {
  IntegerLayer layer;
  layer.name = "dense";
  layer.rounding = rounding;
  layer.weight_shape = {1, 1, 2, 1, n_channels};
  layer.weight.assign(static_cast<std::size_t>(2 * n_channels), 1);
  layer.geometry = {{1, 1}, {1, 1}, {0, 0}, {0, 0}};
  return layer;
}

TEST(QuantizeMultiplier, IsTheNearest31BitFraction) {
  EXPECT_EQ(quantize_multiplier(0), (FixedPoint{0, 31}));
  EXPECT_EQ(quantize_multiplier(1), (FixedPoint{std::int64_t{1} << 30, 30}));
  EXPECT_EQ(quantize_multiplier(std::nextafter(0.5, 0.0)), (FixedPoint{std::int64_t{1} << 30, 31}));
  EXPECT_EQ(quantize_multiplier(0x1p-32), (FixedPoint{std::int64_t{1} << 30, 62}));
  EXPECT_EQ(quantize_multiplier(0x1.8p-33), (FixedPoint{0, 31})) << "engines give such gains up";
  EXPECT_EQ(quantize_multiplier(0x1p40), (FixedPoint{(std::int64_t{1} << 31) - 1, 1}));
  testkit::Random random(3);
  for (int turn = 0; turn < 10000; ++turn) {
    const double gain = std::ldexp(0.5 + random.unit() / 2, static_cast<int>(random.integer(-30, 20)));
    const FixedPoint fixed = quantize_multiplier(gain);
    ASSERT_GE(fixed.multiplier, std::int64_t{1} << 30);
    ASSERT_LT(fixed.multiplier, std::int64_t{1} << 31);
    ASSERT_LE(std::abs(std::ldexp(gain, fixed.shift) - static_cast<double>(fixed.multiplier)), 0.5);
  }
}

TEST(SetScales, MakesWhatTheRuleReads) {
  IntegerLayer layer = dense_layer(Rounding::half_away, 2);
  set_scales(layer, 0.5F, std::vector<float>{0.25F, 1.0F}, 1.0F);
  EXPECT_EQ(layer.shift, (std::vector<std::int32_t>{33, 31}));
  layer.rounding = Rounding::float_gain;
  set_scales(layer, 0.5F, std::vector<float>{0.3F}, 0.7F);
  EXPECT_EQ(layer.gain, (std::vector<float>(2, 0.5F * 0.3F / 0.7F)));
  EXPECT_TRUE(layer.shift.empty());
}

TEST(SetScales, RefusesWhatIsNoScale) {
  IntegerLayer layer = dense_layer(Rounding::half_away, 2);
  EXPECT_THROW(set_scales(layer, 0.0F, std::vector<float>{1.0F}, 1.0F), Error);
  EXPECT_THROW(set_scales(layer, 1.0F, std::vector<float>{1.0F}, INFINITY), Error);
  EXPECT_THROW(set_scales(layer, 1.0F, std::vector<float>{NAN}, 1.0F), Error);
  EXPECT_THROW(set_scales(layer, 1.0F, std::vector<float>{1.0F, 1.0F, 1.0F}, 1.0F), Error);
  layer.rounding = Rounding::folded;
  EXPECT_THROW(set_scales(layer, 1.0F, std::vector<float>{1.0F}, 1.0F), Error);
}

TEST(SetActivation, NarrowsTheOutputCodes) {
  const ActivationCodes codes = activation_codes(LimitRounding::half_away, 0.05F, -10);
  EXPECT_EQ(codes.six, 110);
  IntegerLayer layer = dense_layer(Rounding::half_away, 2);
  set_activation(layer, Activation::relu_n1_to_1, codes);
  EXPECT_EQ(layer.output.low, -30);
  EXPECT_EQ(layer.output.high, 10);
  layer.output = {};
  set_activation(layer, Activation::relu6, codes);
  EXPECT_EQ(layer.output.low, -10);
  EXPECT_EQ(layer.output.high, 110);
  layer.output = {};
  set_activation(layer, Activation::relu6, activation_codes(LimitRounding::half_away, 0.01F, 100));
  EXPECT_EQ(layer.output.high, 127);
  EXPECT_THROW(set_activation(layer, Activation::tanh, codes), Error);
}

TEST(ActivationCodes, RoundTiesAsTheEngineDoes) {
  EXPECT_EQ(activation_codes(LimitRounding::half_away, 4.0F, -39).six, -37);
  EXPECT_EQ(activation_codes(LimitRounding::half_even, 4.0F, -39).six, -38) << "-37.5 to even";
  EXPECT_EQ(activation_codes(LimitRounding::half_away, 2.0F, -76).minus_one, -77);
  EXPECT_EQ(activation_codes(LimitRounding::half_even, 2.0F, -76).minus_one, -76);
}

TEST(SetOutput, TakesAllCodesOfTheType) {
  IntegerLayer layer = dense_layer(Rounding::half_away, 2);
  set_output(layer, DType::u8, 128);
  EXPECT_EQ(layer.output.high, 255);
  EXPECT_EQ(layer.output.zero_point, 128);
  EXPECT_THROW(set_output(layer, DType::i8, 128), Error);
  EXPECT_THROW(set_output(layer, DType::f32, 0), Error);
}

QuantizedConv small_plan() {
  QuantizedConv plan;
  plan.mode = ConvMode::mult7_i8;
  plan.requant = Requant::after_shift;
  plan.weight_shape = {1, 1, 2, 1, 2};
  plan.weight = {1, -2, 3, 4};
  plan.bias = {10, 20};
  plan.per_channel = false;
  plan.gain = {{100, 7}};
  plan.intrinsic_shift = {0};
  plan.input = {4, -3};
  plan.output = {2.25, 5};
  return plan;
}

TEST(LayerOf, TakesAPlanAsItIs) {
  const ConvGeometry geometry{{1, 1}, {1, 1}, {0, 0}, {0, 0}};
  QuantizedConv plan = small_plan();
  const IntegerLayer layer = layer_of(plan, geometry, Activation::relu6, Rounding::half_even);
  EXPECT_EQ(layer.rounding, Rounding::after_shift) << "a plan with gains of its own keeps its rule";
  EXPECT_EQ(layer.multiplier, (std::vector<std::int64_t>{100, 100}));
  EXPECT_EQ(layer.bias_form, BiasForm::folded);
  EXPECT_EQ(layer.output.zero_point, 5);
  EXPECT_EQ(layer.output.low, 5);
  EXPECT_EQ(layer.output.high, 5 + 14) << "13.5 to even";
  plan.requant = Requant::folded;
  EXPECT_EQ(layer_of(plan, geometry, Activation::none, Rounding::half_even).output.zero_point, 0);
  plan.gain.push_back({1, 1}), plan.gain.push_back({1, 1});
  EXPECT_THROW(layer_of(plan, geometry, Activation::none, Rounding::half_even), Error);
}

TEST(LayerOf, MakesMult31GainsFromTheScales) {
  QuantizedConv plan = small_plan();
  plan.requant = Requant::mult31;
  plan.weight_scale = {0.5F, 0.25F};
  const ConvGeometry geometry{{1, 1}, {1, 1}, {0, 0}, {0, 0}};
  const IntegerLayer layer = layer_of(plan, geometry, Activation::none, Rounding::float_gain);
  EXPECT_EQ(layer.bias_form, BiasForm::plain);
  EXPECT_EQ(layer.gain, (std::vector<float>{0.25F * 0.5F / (1 / 2.25F), 0.25F * 0.25F / (1 / 2.25F)}));
  EXPECT_THROW(layer_of(plan, geometry, Activation::none, Rounding::folded), Error);
}

}  // namespace
}  // namespace weightmill
