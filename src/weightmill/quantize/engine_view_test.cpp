#include "engine_view.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "conv_plan.h"
#include "testkit/random.h"

namespace weightmill {
namespace {

struct Drawn {
  std::vector<float> weight, bias;
  QuantizedConv plan;
};

Drawn random_plan(std::uint64_t seed, ConvMode mode) {
  testkit::Random random(seed);
  Drawn drawn;
  for (int i = 0; i < 9 * 4 * 8; ++i) drawn.weight.push_back(static_cast<float>(random.normal() * 0.1));
  for (int c = 0; c < 8; ++c) drawn.bias.push_back(static_cast<float>(random.normal()));
  drawn.plan = plan_conv({.weight = drawn.weight,
                          .weight_shape = {3, 3, 4, 1, 8},
                          .bias = drawn.bias,
                          .input = {20 + 30 * random.unit(), random.integer(-128, 127)},
                          .output = {-3 * random.unit(), 1 + 5 * random.unit()},
                          .mode = mode});
  return drawn;
}

TEST(EngineView, SnappedScalesGiveThePlannedPowerOfTwo) {
  int n_exact = 0;
  int n_all = 0;
  for (const std::uint64_t seed : testkit::seeds(200)) {
    const Drawn drawn = random_plan(seed, ConvMode::pow2_i8);
    const EngineView view = engine_view(drawn.plan);
    for (std::size_t c = 0; c < view.weight_scale.size(); ++c) {
      const float product = view.input_scale * view.weight_scale[c];
      n_exact += product / view.output_scale == std::ldexp(1.0F, -drawn.plan.gain[c].shift) ? 1 : 0;
      ++n_all;
      EXPECT_NEAR(static_cast<double>(view.weight_scale[c]) * drawn.plan.weight_steps_per_unit[c], 1.0, 0x1p-20);
    }
  }
  EXPECT_GT(n_exact, n_all * 3 / 4);
}

TEST(EngineView, BiasIsTheRealOneInSteps) {
  for (const ConvMode mode : {ConvMode::pow2_folded_i8, ConvMode::mult7_i8, ConvMode::mult31_i8}) {
    const Drawn drawn = random_plan(1, mode);
    const EngineView view = engine_view(drawn.plan);
    for (std::size_t c = 0; c < drawn.bias.size(); ++c) {
      const double step = static_cast<double>(view.input_scale) * static_cast<double>(view.weight_scale[c]);
      EXPECT_NEAR(static_cast<double>(view.bias[c]) * step, static_cast<double>(drawn.bias[c]), step);
    }
  }
}

TEST(EngineView, GivesADeadChannelAGainOfOne) {
  const std::vector<float> weight{0.0F, 1.0F};
  const std::vector<float> bias{0.5F, 0.0F};
  const QuantizedConv plan = plan_conv({.weight = weight,
                                        .weight_shape = {1, 1, 1, 1, 2},
                                        .bias = bias,
                                        .input = {100, 0},
                                        .output = {-1, 1},
                                        .mode = ConvMode::pow2_folded_i8});
  const EngineView view = engine_view(plan);
  EXPECT_FLOAT_EQ(view.input_scale * view.weight_scale[0], view.output_scale);
  EXPECT_EQ(view.bias[0], 64);  // 0.5 at 127.5 steps per unit, ties to even
}

}  // namespace
}  // namespace weightmill
