#include "half.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace weightmill {
namespace {

/// The value of a finite float16 by its definition.
double f16_by_definition(std::uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int fraction = half & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

/// The nearest of all finite bit patterns, ties to the even one, by trying the neighbours of `near`.
std::uint16_t nearest_by_definition(float x, std::uint16_t near) {
  std::uint16_t best = near;
  for (const int step : {-1, 1}) {
    const auto other = static_cast<std::uint16_t>(near + step);
    if (((near ^ other) & 0x8000) != 0 || (other & 0x7c00) == 0x7c00) continue;
    const double d_best = std::abs(f16_by_definition(best) - static_cast<double>(x));
    const double d_other = std::abs(f16_by_definition(other) - static_cast<double>(x));
    if (d_other < d_best || (d_other == d_best && (other & 1) == 0)) best = other;
  }
  return best;
}

TEST(Half, ReadsAndRewritesEveryFloat16) {
  for (unsigned i = 0; i < 65536; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    const float value = from_f16(half);
    if ((half & 0x7c00) == 0x7c00) {
      EXPECT_EQ(std::isinf(value), (half & 0x3ff) == 0) << i;
      EXPECT_EQ(std::isnan(value), (half & 0x3ff) != 0) << i;
      if (std::isinf(value)) {
        EXPECT_EQ(to_f16(value), half);
      }
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), f16_by_definition(half)) << i;
    ASSERT_EQ(to_f16(value), half) << i;
  }
}

TEST(Half, RoundsBetweenFloat16NumbersToNearestEven) {
  for (unsigned i = 0; i < 0x7bff; ++i) {
    const auto low = static_cast<std::uint16_t>(i);
    const float middle = (from_f16(low) + from_f16(static_cast<std::uint16_t>(i + 1))) / 2;
    for (const float x : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f), -middle}) {
      const std::uint16_t got = to_f16(x);
      ASSERT_EQ(got, nearest_by_definition(x, got)) << x;
    }
  }
}

TEST(Half, OverflowsToInfinity) {
  EXPECT_EQ(to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(to_f16(-1e9f), 0xfc00);
  EXPECT_TRUE(std::isnan(from_f16(to_f16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Half, RoundsBfloat16ToNearestEven) {
  EXPECT_EQ(to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // tie, stays on the even one
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // tie, goes up to the even one
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(from_bf16(0x3f81), std::bit_cast<float>(0x3f810000u));
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace weightmill
