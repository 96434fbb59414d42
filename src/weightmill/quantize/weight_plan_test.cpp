#include "weight_plan.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <weightmill/base/error.h>

#include "golden_cases.h"
#include "testkit/random.h"

namespace weightmill {
namespace {

std::string refusal_of(const WeightRequest& request) {
  try {
    plan_weights(request);
    return "none";
  } catch (const Error& error) {
    const std::string what = error.what();
    const std::size_t start = what.find("E_");
    return what.substr(start, what.find(':', start) - start);
  }
}

TEST(PlanWeights, EqualsTheGoldenWeights) {
  int n_cases = 0;
  const bool installed = for_each_golden_case([&](const GoldenCase& golden) {
    if (golden.category() != "bf16") return;
    SCOPED_TRACE(golden.id());
    const auto weight = golden.array<float>("w");
    WeightRequest request{.weight = weight, .weight_shape = golden.entry().at("weight_shape").get<Shape>()};
    request.bits = golden.entry().at("bits");
    request.per_channel = golden.entry().at("per_channel");
    const QuantizedWeights plan = plan_weights(request);
    EXPECT_EQ(plan.weight, golden.array<std::int8_t>("qw"));
    EXPECT_EQ(plan.steps_per_unit, golden.array<double>("sw"));
    EXPECT_EQ(plan.renorm, golden.array<float>("renorm"));
    ++n_cases;
  });
  if (!installed) GTEST_SKIP() << "convq not installed: set WEIGHTMILL_GOLDEN_DIR";
  EXPECT_GT(n_cases, 0);
}

TEST(PlanWeights, GivesEachGroupItsOwnScale) {
  std::vector<float> weight(40 * 2, 0.5F);
  weight[0] = 7.0F;                // row 0, channel 0
  weight[33 * 2 + 1] = -14.0F;     // row 33, channel 1
  const QuantizedWeights plan =
      plan_weights({.weight = weight, .weight_shape = {1, 1, 40, 1, 2}, .bits = 4, .group_size = 32});
  EXPECT_EQ(plan.steps_per_unit, (std::vector<double>{1.0, 14.0, 14.0, 0.5}));
  EXPECT_EQ(plan.renorm, (std::vector<float>{1.0F, static_cast<float>(1 / 14.0), static_cast<float>(1 / 14.0), 2.0F}));
  EXPECT_EQ(plan.weight[0], 7);
  EXPECT_EQ(plan.weight[1], 7);
  EXPECT_EQ(plan.weight[33 * 2 + 1], -7);
  EXPECT_EQ(plan.weight[33 * 2], 7);
}

TEST(PlanWeights, GroupsNeverWorsenTheError) {
  for (const std::uint64_t seed : testkit::seeds(50)) {
    testkit::Random random(seed);
    std::vector<float> weight(128 * 3);
    for (float& w : weight) w = static_cast<float>(random.normal() * std::pow(10, random.unit()));
    const auto largest_error = [&](std::size_t group_size) {
      const auto plan = plan_weights(
          {.weight = weight, .weight_shape = {1, 1, 128, 1, 3}, .bits = 4, .group_size = group_size});
      double most = 0;
      for (std::size_t i = 0; i < weight.size(); ++i) {
        const std::size_t lane = i / 3 / plan.group_size * 3 + i % 3;
        const double real = plan.weight[i] * static_cast<double>(plan.renorm[lane]);
        most = std::max(most, std::abs(real - static_cast<double>(weight[i])));
      }
      return most;
    };
    EXPECT_LE(largest_error(32), largest_error(0) * (1 + 1e-6)) << seed;
  }
}

TEST(PlanWeights, WarnsOfInt4PerTensorAndNamesDeadChannels) {
  const std::vector<float> weight{1.0F, 0.0F, 2.0F, 0.0F};
  const auto plan =
      plan_weights({.weight = weight, .weight_shape = {1, 1, 2, 1, 2}, .bits = 4, .per_channel = false});
  ASSERT_EQ(plan.diagnostics.size(), 2u);
  EXPECT_EQ(plan.diagnostics[0].code, DiagnosticCode::dead_channels);
  EXPECT_EQ(plan.diagnostics[0].channels[0].channel, 1);
  EXPECT_EQ(plan.diagnostics[1].code, DiagnosticCode::int4_per_tensor);
  EXPECT_EQ(plan.renorm.size(), 1u);
}

TEST(PlanWeights, RefusesByName) {
  std::vector<float> weight(4, 1.0F);
  const WeightRequest sound{.weight = weight, .weight_shape = {1, 1, 2, 1, 2}};
  WeightRequest request = sound;
  request.bits = 5;
  EXPECT_EQ(refusal_of(request), "E_BITS");
  request = sound;
  request.weight_shape = {1, 1, 2, 1, 3};
  EXPECT_EQ(refusal_of(request), "E_SHAPE");
  for (const std::size_t group : {1, 8, 24}) {
    request = sound;
    request.group_size = group;
    EXPECT_EQ(refusal_of(request), "E_GROUP");
  }
  request.group_size = 32;
  request.per_channel = false;
  EXPECT_EQ(refusal_of(request), "E_GROUP");
  weight[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refusal_of(sound), "E_NOT_FINITE");
}

TEST(PackInt4, PutsTheFirstValueInTheLowNibble) {
  EXPECT_EQ(pack_int4(std::vector<std::int8_t>{1, -1, -8}), (std::vector<std::uint8_t>{0xf1, 0x08}));
}

}  // namespace
}  // namespace weightmill
