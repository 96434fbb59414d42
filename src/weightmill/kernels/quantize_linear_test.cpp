#include "quantize_linear.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "on_each_target.h"
#include "testkit/random.h"

namespace weightmill {
namespace {

using testkit::Random;

CodeRange random_range(Random& random) {
  const int bits = 1 << random.integer(1, 4);
  const bool is_signed = random.chance(0.5);
  return is_signed ? CodeRange{-(1 << (bits - 1)), (1 << (bits - 1)) - 1} : CodeRange{0, (1 << bits) - 1};
}

/// Ties, saturating values and infinities are drawn on purpose.
float random_value(Random& random, float scale) {
  if (random.chance(0.02)) return std::numeric_limits<float>::infinity();
  if (random.chance(0.3)) return (static_cast<float>(random.integer(-40, 40)) + 0.5f) * scale;
  return static_cast<float>(random.normal()) * scale * (random.chance(0.2) ? 1e6f : 20.0f);
}

float random_scale(Random& random) {
  const auto magnitude = static_cast<float>(std::exp(random.normal()));
  return random.chance(0.1) ? -magnitude : random.chance(0.3) ? 0.25f : magnitude;
}

struct Case {
  std::vector<float> x, scale;
  std::vector<std::int32_t> zero_point;
  CodeRange range;
};

Case random_case(std::uint64_t seed, double nan_chance) {
  Random random(seed);
  Case result;
  result.range = random_range(random);
  for (auto n = random.integer(0, 150); n > 0; --n) {
    result.scale.push_back(random_scale(random));
    result.zero_point.push_back(static_cast<std::int32_t>(random.integer(result.range.low, result.range.high)));
    result.x.push_back(random.chance(nan_chance) ? std::nanf("") : random_value(random, result.scale.back()));
  }
  return result;
}

TEST(QuantizeLinearKernel, AllTargetsAgreeBitForBit) {
  for (const std::uint64_t seed : testkit::seeds(300)) {
    SCOPED_TRACE(seed);
    const Case c = random_case(seed, 0);
    const float scale = c.scale.empty() ? 1 : c.scale.front();
    const std::int32_t zero_point = c.zero_point.empty() ? 0 : c.zero_point.front();
    std::vector<std::uint16_t> want_run(c.x.size()), want_each(c.x.size());
    scalar::quantize_linear_run(c.x, scale, zero_point, c.range, want_run);
    scalar::quantize_linear_each(c.x, c.scale, c.zero_point, c.range, want_each);
    on_each_target([&] {
      std::vector<std::uint16_t> codes(c.x.size());
      EXPECT_FALSE(quantize_linear_run(c.x, scale, zero_point, c.range, codes));
      EXPECT_EQ(codes, want_run);
      EXPECT_FALSE(quantize_linear_each(c.x, c.scale, c.zero_point, c.range, codes));
      EXPECT_EQ(codes, want_each);
    });
  }
}

TEST(QuantizeLinearKernel, MeasuresTheSameDistanceOnAllTargets) {
  for (const std::uint64_t seed : testkit::seeds(300)) {
    SCOPED_TRACE(seed);
    const Case c = random_case(seed, 0);
    std::vector<double> steps_per_unit;
    for (const float scale : c.scale) steps_per_unit.push_back(1 / static_cast<double>(scale));
    std::vector<std::uint16_t> codes(c.x.size());
    scalar::quantize_linear_each(c.x, c.scale, c.zero_point, c.range, codes);
    const double want = scalar::linear_distance_each(c.x, codes, steps_per_unit, c.zero_point, c.range);
    EXPECT_LE(want, 0.5 + 65536 * 0x1p-24);
    if (!codes.empty() && seed % 2 == 0) codes[seed % codes.size()] ^= 1;  // a wrong code is seen
    const double moved = scalar::linear_distance_each(c.x, codes, steps_per_unit, c.zero_point, c.range);
    const double one = codes.empty() ? 1 : steps_per_unit[0];
    const double want_run = scalar::linear_distance_run(c.x, codes, one, 0, c.range);
    on_each_target([&] {
      EXPECT_EQ(linear_distance_each(c.x, codes, steps_per_unit, c.zero_point, c.range), moved);
      EXPECT_EQ(linear_distance_run(c.x, codes, one, 0, c.range), want_run);
    });
  }
}

TEST(QuantizeLinearKernel, CountsNoSaturationAsDistance) {
  const std::vector<float> x{1000, -1000, 3.25f};
  const std::vector<std::uint16_t> codes{127, static_cast<std::uint16_t>(-128), 3};
  EXPECT_EQ(linear_distance_run(x, codes, 1, 0, {-128, 127}), 0.25);
  EXPECT_EQ(linear_distance_run(x, codes, 1, 0, {-128, 126}), 873);
}

TEST(QuantizeLinearKernel, FindsEveryNaN) {
  for (const std::uint64_t seed : testkit::seeds(100)) {
    SCOPED_TRACE(seed);
    const Case c = random_case(seed, 0.01);
    const bool want = std::any_of(c.x.begin(), c.x.end(), [](float x) { return std::isnan(x); });
    std::vector<std::uint16_t> codes(c.x.size());
    on_each_target([&] {
      EXPECT_EQ(quantize_linear_run(c.x, 1, 0, c.range, codes), want);
      EXPECT_EQ(quantize_linear_each(c.x, c.scale, c.zero_point, c.range, codes), want);
    });
  }
}

TEST(QuantizeLinearKernel, RoundsTiesToEvenAndSaturates) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x{0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 300, -300, infinity, -infinity};
  std::vector<std::uint16_t> codes(x.size());
  quantize_linear_run(x, 1, 5, {-128, 127}, codes);
  std::vector<int> as_signed;
  for (const std::uint16_t code : codes) as_signed.push_back(static_cast<std::int16_t>(code));
  EXPECT_EQ(as_signed, (std::vector<int>{5, 7, 7, 5, 3, 127, -128, 127, -128}));
}

}  // namespace
}  // namespace weightmill
