#include "conv_plan.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <weightmill/base/error.h>

#include "golden_cases.h"

namespace weightmill {
namespace {

/// "E_RANGE" of "layer: E_RANGE: ...".
std::string error_name(const Error& error) {
  const std::string what = error.what();
  const std::size_t start = what.find("E_");
  return start == std::string::npos ? what : what.substr(start, what.find(':', start) - start);
}

std::string refusal_of(const ConvRequest& request) {
  try {
    plan_conv(request);
    return "none";
  } catch (const Error& error) {
    return error_name(error);
  }
}

std::vector<std::string> log_of(const QuantizedConv& plan) {
  std::vector<std::string> log;
  for (const Diagnostic& diagnostic : plan.diagnostics) {
    if (name_of(diagnostic.code)[0] != 'I') log.emplace_back(name_of(diagnostic.code));
  }
  return log;
}

std::string golden_kind(Requant requant) { return requant == Requant::after_shift ? "tflite" : "folded"; }

template <class T, class Get>
std::vector<int> each(const std::vector<T>& values, Get get) {
  std::vector<int> result;
  for (const T& value : values) result.push_back(static_cast<int>(get(value)));
  return result;
}

void expect_fields(const QuantizedConv& plan, const nlohmann::json& expect) {
  EXPECT_EQ(name_of(plan.mode), expect.at("mode").get<std::string>());
  EXPECT_EQ(golden_kind(plan.requant), expect.at("kind"));
  EXPECT_EQ(size_bits(plan.output_dtype), expect.at("out_bits").get<unsigned>());
  EXPECT_EQ(plan.output.steps_per_unit, expect.at("output_scale").get<double>());
  EXPECT_EQ(plan.output.zero_point, expect.at("output_zero").get<std::int64_t>());
  EXPECT_EQ(each(plan.gain, [](const FixedPoint& g) { return g.shift; }), expect.at("shift").get<std::vector<int>>());
  EXPECT_EQ(each(plan.gain, [](const FixedPoint& g) { return g.multiplier; }),
            expect.at("multiplier").get<std::vector<int>>());
  EXPECT_EQ(!plan.per_channel, expect.at("shift_is_scalar").get<bool>());
  EXPECT_EQ(each(plan.intrinsic_shift, [](int h) { return h; }), expect.at("intrinsic").get<std::vector<int>>());
  std::vector<bool> msb_left{false};
  if (plan.input_dtype == DType::i16) {
    msb_left.clear();
    for (const int h : plan.intrinsic_shift) msb_left.push_back(h == 1);
  }
  EXPECT_EQ(msb_left, expect.at("msb_left_shift").get<std::vector<bool>>());
  EXPECT_EQ(plan.weight_drop, expect.at("weight_drop").get<std::vector<int>>());
  EXPECT_EQ(log_of(plan), expect.at("log").get<std::vector<std::string>>());
  EXPECT_EQ(plan.attempts, expect.at("attempts").get<int>());
}

void expect_plan(const GoldenCase& golden, const ConvRequest& request) {
  const QuantizedConv plan = plan_conv(request);
  expect_fields(plan, golden.entry().at("expect"));
  EXPECT_EQ(plan.weight, golden.array<std::int8_t>("qw"));
  EXPECT_EQ(plan.weight_steps_per_unit, golden.array<double>("sw"));
  EXPECT_EQ(plan.bias_steps_per_unit, golden.array<double>("bscale"));
  const auto bias = golden.array<std::int32_t>("qb");
  ASSERT_EQ(plan.bias.size(), bias.size());
  for (std::size_t c = 0; c < bias.size(); ++c) {
    EXPECT_LE(std::abs(std::int64_t{plan.bias[c]} - bias[c]), golden.entry().at("bias_tol").get<int>()) << c;
  }
}

void expect_case(const GoldenCase& golden) {
  OwnedRequest owned;
  if (!golden.entry().contains("expect_error")) {
    read_request(golden, owned);
    return expect_plan(golden, owned.request);
  }
  try {
    read_request(golden, owned);
    plan_conv(owned.request);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error_name(error), golden.entry().at("expect_error"));
  }
}

TEST(PlanConv, EqualsTheGoldenPlans) {
  int n_cases = 0;
  const bool installed = for_each_golden_case([&](const GoldenCase& golden) {
    const std::string category = golden.category();
    if (category == "mult31" || category == "bf16" || category.starts_with("unit_")) return;
    SCOPED_TRACE(golden.id() + " " + category);
    expect_case(golden);
    ++n_cases;
  });
  if (!installed) GTEST_SKIP() << "convq not installed: set WEIGHTMILL_GOLDEN_DIR";
  EXPECT_GT(n_cases, 0);
}

TEST(PlanConv, EqualsTheGoldenEngineNativePlans) {
  int n_cases = 0;
  const bool installed = for_each_golden_case([&](const GoldenCase& golden) {
    if (golden.category() != "mult31") return;
    SCOPED_TRACE(golden.id());
    OwnedRequest owned;
    read_request(golden, owned);
    const QuantizedConv plan = plan_conv(owned.request);
    const auto& expect = golden.entry().at("expect");
    EXPECT_EQ(1 / plan.input.steps_per_unit, expect.at("in_scale").get<double>());
    EXPECT_EQ(1 / plan.output.steps_per_unit, expect.at("out_scale").get<double>());
    EXPECT_EQ(plan.output.zero_point, expect.at("out_zero").get<std::int64_t>());
    EXPECT_EQ(log_of(plan), expect.at("log").get<std::vector<std::string>>());
    EXPECT_EQ(plan.attempts, expect.at("attempts").get<int>());
    EXPECT_EQ(plan.weight, golden.array<std::int8_t>("qw"));
    EXPECT_EQ(plan.bias, golden.array<std::int32_t>("bias"));
    const std::vector<double> scale(plan.weight_scale.begin(), plan.weight_scale.end());
    EXPECT_EQ(scale, golden.array<double>("w_scale"));
    ++n_cases;
  });
  if (!installed) GTEST_SKIP() << "convq not installed: set WEIGHTMILL_GOLDEN_DIR";
  EXPECT_GT(n_cases, 0);
}

/// A small sound request; each refusal test breaks one thing of it.
struct SmallRequest {
  std::vector<float> weight{1.0F, -2.0F, 0.5F, 0.25F};
  std::vector<float> bias{0.1F, 0.2F};
  std::vector<float> mean{0.5F, 0.5F};
  ConvRequest request;

  SmallRequest() {
    request.weight = weight;
    request.weight_shape = {1, 1, 2, 1, 2};
    request.bias = bias;
    request.input = {127.5, 0};
    request.output = {-1.0, 1.0};
  }
};

TEST(PlanConv, RefusesWrongShapes) {
  SmallRequest s;
  s.request.weight_shape = {2, 2};
  EXPECT_EQ(refusal_of(s.request), "E_SHAPE");
  s.request.weight_shape = {1, 1, 2, 1, 0};
  EXPECT_EQ(refusal_of(s.request), "E_SHAPE");
  s.request.weight_shape = {1LL << 40, 1LL << 40, 2, 1, 2};
  EXPECT_EQ(refusal_of(s.request), "E_SHAPE");
  s.request.weight_shape = {1, 1, 2, 1, 3};
  EXPECT_EQ(refusal_of(s.request), "E_SHAPE");
  s.request.weight_shape = {1, 1, 2, 1, 2};
  s.request.bias = std::span<const float>(s.weight).first(3);
  EXPECT_EQ(refusal_of(s.request), "E_SHAPE");
  s.request.bias = s.bias;
  s.request.input_mean = std::span<const float>(s.mean).first(1);
  EXPECT_EQ(refusal_of(s.request), "E_SHAPE");
}

TEST(PlanConv, RefusesWhatIsNotFinite) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  SmallRequest s;
  s.weight[1] = kNan;
  EXPECT_EQ(refusal_of(s.request), "E_NOT_FINITE");
  s.weight[1] = -kInf;
  EXPECT_EQ(refusal_of(s.request), "E_NOT_FINITE");
  s.weight[1] = 1;
  s.bias[0] = kInf;
  EXPECT_EQ(refusal_of(s.request), "E_NOT_FINITE");
  s.bias[0] = 0;
  s.mean[1] = kNan;
  s.request.input_mean = s.mean;
  EXPECT_EQ(refusal_of(s.request), "E_NOT_FINITE");
  s.request.input_mean.reset();
  s.request.output.high = static_cast<double>(kInf);
  EXPECT_EQ(refusal_of(s.request), "E_NOT_FINITE");
}

TEST(PlanConv, RefusesWrongQuantization) {
  SmallRequest s;
  s.request.output = {1.0, -1.0};
  EXPECT_EQ(refusal_of(s.request), "E_RANGE");
  s.request.output = {-1.0, 1.0};
  for (const double steps : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan(""), 1e-60, 1e60}) {
    s.request.input.steps_per_unit = steps;
    EXPECT_EQ(refusal_of(s.request), "E_INPUT_SCALE") << steps;
  }
  s.request.input = {127.5, 128};
  EXPECT_EQ(refusal_of(s.request), "E_INPUT_ZERO");
  s.request.mode = ConvMode::mult31_i16;
  s.request.input = {127.5, 1};
  EXPECT_EQ(refusal_of(s.request), "E_INPUT_ZERO");
  s.request.input = {127.5, 0};
  s.request.relu_workaround = true;
  EXPECT_EQ(refusal_of(s.request), "E_RELU_MODE");
}

TEST(PlanConv, RefusesAZeroOutputUnlessAllowed) {
  SmallRequest s;
  s.request.output = {0.0, 0.0};
  EXPECT_EQ(refusal_of(s.request), "E_ZERO_OUTPUT");
  s.request.allow_zero_output = true;
  const QuantizedConv plan = plan_conv(s.request);
  EXPECT_EQ(plan.output.steps_per_unit, 1.0);
  EXPECT_EQ(log_of(plan).back(), "W_ZERO_OUTPUT");
  s.request.output = {0.0, std::numeric_limits<double>::denorm_min()};
  EXPECT_EQ(refusal_of(s.request), "E_ZERO_OUTPUT");
}

TEST(PlanConv, NamesChannelsWhoseSumEnginesWouldWrap) {
  std::vector<float> weight(2 * 70000, 1.0F);
  for (std::size_t i = 0; i < weight.size(); i += 2) weight[i] = i == 0 ? 1.0F : 0.01F;
  ConvRequest request;
  request.weight = weight;
  request.weight_shape = {1, 1, 70000, 1, 2};
  request.input = {100, -128};
  request.output = {-1000, 1000};
  const QuantizedConv plan = plan_conv(request);
  ASSERT_EQ(log_of(plan), (std::vector<std::string>{"X_ACC_RISK"}));
  EXPECT_EQ(plan.diagnostics.back().channels, (std::vector<ChannelEffect>{{1, 0.0}}));
  request.mode = ConvMode::mult31_i16;
  request.input = {100, 0};
  EXPECT_TRUE(log_of(plan_conv(request)).empty()) << "64 bits";
}

TEST(PlanConv, TheClassicSearchCanEndEmptyHanded) {
  SmallRequest s;
  s.weight = {0.0F, 1.0F, 0.0F, 0.5F};
  s.bias = {3.0F, 0.0F};
  s.request.mode = ConvMode::pow2_folded_i32;
  s.request.asymmetric = false;
  s.request.input = {127.0, 0};
  s.request.output = {-2.9, 2.9};
  s.request.policy = PlanPolicy::classic;
  EXPECT_EQ(refusal_of(s.request), "E_NO_PLAN");
  s.request.policy = PlanPolicy::fixed;
  EXPECT_EQ(log_of(plan_conv(s.request)), (std::vector<std::string>{"W_SOME_ZERO", "X_BIAS_SATURATED"}));
}

}  // namespace
}  // namespace weightmill
