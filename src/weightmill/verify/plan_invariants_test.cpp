#include "plan_invariants.h"

#include <functional>

#include <gtest/gtest.h>

namespace weightmill {
namespace {

/// Input and output at one step per unit; weights at 4 and 8 steps per unit.
QuantizedConv sound_plan() {
  QuantizedConv plan;
  plan.mode = ConvMode::pow2_folded_i8;
  plan.requant = Requant::folded;
  plan.weight_shape = {1, 1, 2, 1, 2};
  plan.weight = {64, -127, 1, 0};
  plan.bias = {5, -5};
  plan.gain = {{1, 2}, {1, 3}};
  plan.intrinsic_shift = {0, 0};
  plan.weight_steps_per_unit = {4, 8};
  plan.bias_steps_per_unit = {4, 8};
  plan.weight_drop = {0, 0};
  return plan;
}

QuantizedConv sound_mult31_plan() {
  QuantizedConv plan = sound_plan();
  plan.mode = ConvMode::mult31_i8;
  plan.requant = Requant::mult31;
  plan.gain.clear();
  plan.weight_scale = {0.25F, 0.125F};
  return plan;
}

std::size_t n_faults_after(QuantizedConv plan, const std::function<void(QuantizedConv&)>& change) {
  change(plan);
  return verify_plan(plan).size();
}

TEST(VerifyPlan, FindsNothingInSoundPlans) {
  EXPECT_EQ(verify_plan(sound_plan()), std::vector<std::string>{});
  EXPECT_EQ(verify_plan(sound_mult31_plan()), std::vector<std::string>{});
}

TEST(VerifyPlan, FindsEachBrokenPromise) {
  const std::vector<std::function<void(QuantizedConv&)>> changes{
      [](QuantizedConv& p) { p.weight_shape = {2, 2}; },
      [](QuantizedConv& p) { p.weight.pop_back(); },
      [](QuantizedConv& p) { p.bias.pop_back(); },
      [](QuantizedConv& p) { p.gain.pop_back(); },
      [](QuantizedConv& p) { p.weight[1] = -128; },
      [](QuantizedConv& p) { p.output.steps_per_unit = 0; },
      [](QuantizedConv& p) { p.output.zero_point = 128; },
      [](QuantizedConv& p) { p.weight_steps_per_unit[0] = 0; },
      [](QuantizedConv& p) { p.weight_steps_per_unit[0] = 4.1; },
      [](QuantizedConv& p) { p.bias_steps_per_unit[1] = 0; },
      [](QuantizedConv& p) { p.bias_steps_per_unit[1] = 7; },
      [](QuantizedConv& p) { p.intrinsic_shift[0] = 1; },
      [](QuantizedConv& p) { p.gain[0].multiplier = 2; },
      [](QuantizedConv& p) { p.gain[0].shift = -1; },
      [](QuantizedConv& p) { p.gain[0].shift = 32; },
      [](QuantizedConv& p) { p.input_dtype = DType::i16; },
      [](QuantizedConv& p) {
        p.output.zero_point = -128;
        p.gain[0].shift = 25;
      },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) EXPECT_GT(n_faults_after(sound_plan(), changes[i]), 0u) << i;
}

TEST(VerifyPlan, FindsWhatAnEngineCannotExpress) {
  EXPECT_EQ(n_faults_after(sound_mult31_plan(), [](QuantizedConv& p) { p.weight_scale[1] = 0; }), 1u);
  EXPECT_EQ(n_faults_after(sound_mult31_plan(), [](QuantizedConv& p) { p.output.steps_per_unit = 1e-10; }), 2u);
}

TEST(VerifyPlan, AllowsARoundedMultiplierWhereThePlanOwnsUpToIt) {
  QuantizedConv plan = sound_plan();
  plan.weight_steps_per_unit[0] = 4.02;
  EXPECT_EQ(verify_plan(plan).size(), 1u);
  plan.exact_gain = false;
  EXPECT_EQ(verify_plan(plan), std::vector<std::string>{});
}

TEST(VerifyPlan, NamesTheLane) {
  QuantizedConv plan = sound_plan();
  plan.gain[1].shift = 40;
  EXPECT_EQ(verify_plan(plan).front(), "lane 1 has shift 40");
}

}  // namespace
}  // namespace weightmill
