#include "conv_search.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <weightmill/base/error.h>

#include "testkit/random.h"

namespace weightmill {
namespace {

struct Drawn {
  std::vector<float> weight;
  ConvRequest request;

  explicit Drawn(std::uint64_t seed, ConvMode mode) {
    testkit::Random random(seed);
    for (int i = 0; i < 27 * 8; ++i) weight.push_back(static_cast<float>(random.normal()));
    request.weight = weight;
    request.weight_shape = {3, 3, 3, 1, 8};
    request.input = {20 + 40 * random.unit(), 0};
    request.output = {-10 * random.unit(), 10};
    request.mode = mode;
  }
};

TEST(SearchOutputScale, NeverExpectsMoreNoiseThanWithout) {
  double gained = 0;
  for (const std::uint64_t seed : testkit::seeds(100)) {
    for (const ConvMode mode :
         {ConvMode::pow2_folded_i8, ConvMode::pow2_i16, ConvMode::mult7_i8, ConvMode::mult31_i8}) {
      const Drawn drawn(seed, mode);
      const ScaleChoice choice = search_output_scale(drawn.request);
      EXPECT_LE(choice.noise, choice.noise_without);
      EXPECT_GE(choice.range_factor, 1.0);
      EXPECT_LT(choice.range_factor, 2.0);
      if (mode == ConvMode::pow2_i16) gained += choice.noise_without / choice.noise;
    }
  }
  EXPECT_GT(gained / 100, 1.2);  // where the output is fine, the weights' lost bits are the noise
}

TEST(SearchOutputScale, WithOneCandidateIsThePlan) {
  const Drawn drawn(1, ConvMode::pow2_i8);
  const ScaleChoice choice = search_output_scale(drawn.request, {.n_candidates = 1});
  const QuantizedConv plan = plan_conv(drawn.request);
  EXPECT_EQ(choice.plan.weight, plan.weight);
  EXPECT_EQ(choice.plan.output, plan.output);
  EXPECT_EQ(choice.noise, choice.noise_without);
}

TEST(SearchOutputScale, TakesMeasuredNoiseWhereItIsGiven) {
  const Drawn drawn(1, ConvMode::pow2_i8);
  const double wanted = 1.5;
  const double steps = plan_conv(drawn.request).output.steps_per_unit;
  const auto distance = [&](const QuantizedConv& plan) {
    return std::abs(steps / plan.output.steps_per_unit - wanted);
  };
  const ScaleChoice choice = search_output_scale(drawn.request, {.measured_noise = distance});
  EXPECT_NEAR(choice.range_factor, wanted, 0.05);
  EXPECT_LE(choice.noise, choice.noise_without);
}

TEST(SearchOutputScale, KeepsTheBetterOfTwoMultipliers) {
  int n_exact = 0, n_nearest = 0;
  for (const std::uint64_t seed : testkit::seeds(100)) {
    const Drawn drawn(seed, ConvMode::mult7_i16);
    const ScaleChoice choice = search_output_scale(drawn.request, {.n_candidates = 1});
    for (const MultiplierRule rule : {MultiplierRule::exact, MultiplierRule::nearest}) {
      ConvRequest request = drawn.request;
      request.multiplier = rule;
      const ScaleChoice alone = search_output_scale(request, {.n_candidates = 1});
      EXPECT_EQ(alone.plan.exact_gain, rule == MultiplierRule::exact);
      EXPECT_LE(choice.noise, alone.noise);
    }
    (choice.plan.exact_gain ? n_exact : n_nearest) += 1;
  }
  EXPECT_GT(n_exact, 0);
  EXPECT_GT(n_nearest, 0);
  const Drawn drawn(1, ConvMode::mult7_i16);
  const auto without = search_output_scale(drawn.request, {.n_candidates = 1, .try_multipliers = false});
  EXPECT_TRUE(without.plan.exact_gain);
}

TEST(SearchOutputScale, RefusesByName) {
  const Drawn drawn(1, ConvMode::pow2_i8);
  EXPECT_THROW(search_output_scale(drawn.request, {.n_candidates = 0}), Error);
  const std::vector<float> two(2, 1.0F);
  EXPECT_THROW(search_output_scale(drawn.request, {.input_square = std::span(two)}), Error);
}

}  // namespace
}  // namespace weightmill
