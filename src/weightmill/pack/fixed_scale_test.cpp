#include "fixed_scale.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <testkit/golden.h>
#include <testkit/random.h>
#include <weightmill/base/error.h>

namespace weightmill {
namespace {

using nlohmann::json;
using testkit::to_double;

json pair_of(FixedPoint value) { return json::array({value.multiplier, value.shift}); }

/// What the function named by the case returns, in the shape of the golden set.
json result_of(const json& c) {
  const std::string fn = c.at("fn");
  const json& args = c.at("args");
  const auto real = [&](std::size_t i) { return to_double(args.at(i)); };
  if (fn == "quantise_scale") return pair_of(quantise_scale(real(0)));
  if (fn == "reduced_quantise_scale") return pair_of(reduced_quantise_scale(real(0)));
  if (fn == "quantise_pooling_scale")
    return pair_of(quantise_pooling_scale(args.at(0), args.size() > 1 ? args.at(1).get<int>() : 0));
  if (fn == "elementwise_mul_scale") {
    return pair_of(elementwise_mul_scale(real(0), real(1), real(2), args.size() > 3 && args.at(3).get<bool>()));
  }
  if (fn == "simplified_elementwise_add_sub_scale") {
    const auto s =
        simplified_elementwise_add_sub_scale(real(0), real(1), real(2), args.size() > 3 ? args.at(3).get<int>() : 16);
    return json::array({s.a_rescale, s.b_rescale, s.output.multiplier, s.output.shift});
  }
  const auto s = advanced_elementwise_add_sub_scale(real(0), real(1), real(2), args.at(3));
  return json::array(
      {s.input.multiplier, s.input.shift, s.output.multiplier, s.output.shift, static_cast<int>(s.operand)});
}

TEST(FixedScale, EqualsVelasScaling) {
  const auto set = testkit::GoldenSet::open("ethosu/scaling_vectors");
  if (!set) GTEST_SKIP() << "ethosu/scaling_vectors not installed: set WEIGHTMILL_GOLDEN_DIR";
  for (const auto& c : set->cases()) {
    SCOPED_TRACE(c.dump());
    if (c.contains("error")) {
      EXPECT_THROW(result_of(c), Error);
      continue;
    }
    const json result = result_of(c);
    ASSERT_EQ(result.size(), c.at("out").size());
    for (std::size_t i = 0; i < result.size(); ++i) EXPECT_EQ(to_double(result[i]), to_double(c.at("out")[i]));
  }
}

TEST(FixedScale, RegorEqualsTheClassicRuleWhereNothingHasToBeRepaired) {
  testkit::Random random(1);
  for (int i = 0; i < 20000; ++i) {
    const double factor = std::ldexp(0.5 + random.unit() / 2, static_cast<int>(random.integer(-31, 30)));
    const FixedPoint classic = quantise_scale(factor);
    if (classic.multiplier == std::int64_t{1} << 31) continue;
    EXPECT_EQ(quantise_scale_regor(factor), classic);
    if (factor < 0x1p14) {
      EXPECT_EQ(reduced_quantise_scale_regor(factor), reduced_quantise_scale(factor));
    }
  }
}

TEST(FixedScale, RegorRepairsShiftsOutsideTheField) {
  EXPECT_EQ(quantise_scale_regor(std::ldexp(0.75, -32)), (FixedPoint{0x60000000, 63}));
  EXPECT_EQ(quantise_scale_regor(std::ldexp(0.75, -40)), (FixedPoint{0x60000000 >> 8, 63}));
  EXPECT_EQ(quantise_scale_regor(std::ldexp(0.75, -70)), (FixedPoint{0, 0}));
  EXPECT_EQ(quantise_scale_regor(0), (FixedPoint{0, 31}));
  EXPECT_EQ(reduced_quantise_scale_regor(std::ldexp(0.75, 20)), (FixedPoint{0x6000 << 5, 0}));
}

TEST(FixedScale, RegorKeepsTheMultiplierBelowTwoToThe31) {
  EXPECT_EQ(quantise_scale(std::nextafter(1.0, 0.0)), (FixedPoint{std::int64_t{1} << 31, 31}));
  EXPECT_EQ(quantise_scale_regor(std::nextafter(1.0, 0.0)), (FixedPoint{1 << 30, 30}));
}

TEST(FixedScale, ApproximatesTheFactorToHalfAStep) {
  testkit::Random random(2);
  for (int i = 0; i < 10000; ++i) {
    const double factor = std::ldexp(0.5 + random.unit() / 2, static_cast<int>(random.integer(-32, 31)));
    const auto [multiplier, shift] = quantise_scale(factor);
    EXPECT_LE(std::abs(std::ldexp(static_cast<double>(multiplier), -shift) - factor), std::ldexp(0.5, -shift));
  }
}

TEST(FixedScale, RefusesWhatIsNoScale) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {infinity, -infinity, std::nan("")}) {
    EXPECT_THROW(quantise_scale(bad), Error);
    EXPECT_THROW(reduced_quantise_scale(bad), Error);
    EXPECT_THROW(quantise_scale_regor(bad), Error);
    EXPECT_THROW(reduced_quantise_scale_regor(bad), Error);
  }
  EXPECT_THROW(quantise_pooling_scale(0), Error);
  EXPECT_THROW(quantise_pooling_scale(-1), Error);
  EXPECT_THROW(quantise_pooling_scale(std::int64_t{1} << 40), Error);
  EXPECT_THROW(quantise_pooling_scale(4, -1), Error);
  EXPECT_THROW(quantise_pooling_scale(4, 32), Error);
  EXPECT_THROW(elementwise_mul_scale(1, 1, 0), Error);
  EXPECT_THROW(elementwise_mul_scale(1e30, 1e30, 1), Error);
  EXPECT_THROW(simplified_elementwise_add_sub_scale(0, 0, 1), Error);
  EXPECT_THROW(simplified_elementwise_add_sub_scale(1, 1, 0), Error);
}

}  // namespace
}  // namespace weightmill
