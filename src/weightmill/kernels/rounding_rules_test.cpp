#include "rounding_rules.h"

#include <cmath>

#include <gtest/gtest.h>

#include "testkit/random.h"

namespace weightmill {
namespace {

using testkit::Random;

/// x * 2^-shift as a fraction that long double holds exactly: |x| < 2^60.
long double scaled(std::int64_t x, int shift) { return std::ldexp(static_cast<long double>(x), -shift); }

/// A number whose dropped bits are often a tie.
std::int64_t tie_prone(Random& random, int shift, int bits) {
  const std::int64_t limit = std::int64_t{1} << bits;
  const std::int64_t x = random.integer(-limit, limit);
  if (shift == 0 || random.chance(0.5)) return x;
  return (x >> shift << shift) + (std::int64_t{1} << (shift - 1));
}

TEST(RoundingRules, ShiftsRoundToTheNearestWithTheirNamedTie) {
  Random random(11);
  for (int turn = 0; turn < 200000; ++turn) {
    const int shift = static_cast<int>(random.integer(0, 40));
    const std::int64_t x = tie_prone(random, shift, static_cast<int>(random.integer(1, 50)));
    SCOPED_TRACE(testing::Message() << "x " << x << " shift " << shift);
    ASSERT_EQ(shift_half_even(x, shift), std::llrint(scaled(x, shift)));
    ASSERT_EQ(shift_half_away(x, shift), std::llround(scaled(x, shift)));
    ASSERT_EQ(shift_half_up(x, shift), static_cast<std::int64_t>(std::floor(scaled(2 * x, shift) / 2 + 0.5L)));
    ASSERT_EQ(shift_half_even<Int128>(x, shift), shift_half_even(x, shift));
  }
}

TEST(RoundingRules, OneRoundingRulesAreTheExactProductRoundedOnce) {
  Random random(12);
  for (int turn = 0; turn < 100000; ++turn) {
    const auto acc = static_cast<std::int32_t>(random.integer(-(1 << 26), 1 << 26));
    const std::int64_t multiplier =
        random.chance(0.3) ? std::int64_t{1} << 30 : random.integer(1 << 30, (1LL << 31) - 1);
    const int shift = static_cast<int>(random.integer(20, 62));
    const long double exact = std::ldexp(static_cast<long double>(acc) * static_cast<long double>(multiplier), -shift);
    ASSERT_EQ(requant_half_even<std::int64_t>(acc, multiplier, shift), std::llrint(exact));
    ASSERT_EQ(requant_half_away<std::int64_t>(acc, multiplier, shift), std::llround(exact));
    ASSERT_EQ(requant_half_up<std::int64_t>(acc, multiplier, shift),
              static_cast<std::int64_t>(requant_half_up<Int128>(acc, multiplier, shift)));
  }
}

TEST(RoundingRules, TiesSeparateTheRules) {
  const std::int64_t half = std::int64_t{1} << 30;  // with shift 32 the gain is 1/4
  EXPECT_EQ(requant_half_up<std::int64_t>(-2, half, 32), 0);
  EXPECT_EQ(requant_half_away<std::int64_t>(-2, half, 32), -1);
  EXPECT_EQ(requant_half_even<std::int64_t>(-2, half, 32), 0);
  EXPECT_EQ(requant_half_even<std::int64_t>(6, half, 32), 2);
  EXPECT_EQ(requant_gemmlowp_double(-2, half, 32), -1);
  EXPECT_EQ(requant_double_half_up(-2, half, 32), 0);
  EXPECT_EQ(requant_gemmlowp_double(1, half, 32), 1) << "the first rounding turns 1/2 into 1, the second 1/2 into 1";
  EXPECT_EQ(requant_half_away<std::int64_t>(1, half, 32), 0);
  EXPECT_EQ(requant_float_gain(-2, 0.25F, -128, 127), 0);
  EXPECT_EQ(requant_float_gain(6, 0.25F, -128, 127), 2);
  EXPECT_EQ(requant_double_gain(-2, 0.25), -1);
  EXPECT_EQ(requant_double_gain(6, 0.25), 2);
}

TEST(RoundingRules, DoubleRoundingIsTheHighHalfThenAShift) {
  Random random(13);
  for (int turn = 0; turn < 100000; ++turn) {
    const auto acc = static_cast<std::int32_t>(random.integer(-(1LL << 31), (1LL << 31) - 1));
    const std::int64_t multiplier = random.integer(1 << 30, (1LL << 31) - 1);
    const int shift = static_cast<int>(random.integer(31, 62));
    const auto product = static_cast<long double>(acc) * static_cast<long double>(multiplier);
    const long double high = std::floor(std::ldexp(product, -31) + 0.5L);
    ASSERT_EQ(requant_gemmlowp_double(acc, multiplier, shift), std::llround(std::ldexp(high, 31 - shift)));
    ASSERT_EQ(requant_double_half_up(acc, multiplier, shift),
              static_cast<std::int64_t>(std::floor(std::ldexp(high, 31 - shift) + 0.5L)));
    ASSERT_EQ(requant_ethos_u_double(acc, multiplier, shift), requant_gemmlowp_double(acc, multiplier, shift));
  }
}

TEST(RoundingRules, GainsAboveOneShiftTheAccumulatorFirst) {
  EXPECT_EQ(requant_gemmlowp_double(100, std::int64_t{1} << 30, 29), 200);
  EXPECT_EQ(requant_double_half_up(-100, std::int64_t{3} << 29, 30), -150);
  EXPECT_EQ(requant_gemmlowp_double(1 << 30, std::int64_t{1} << 30, 29), 0) << "2^32 wraps to 0";
}

TEST(RoundingRules, Int16x8CutsTheMultiplierTo15Bits) {
  EXPECT_EQ(reduce_multiplier(std::int64_t{1} << 30), 1 << 14);
  EXPECT_EQ(reduce_multiplier(0x7ffeffff), 0x7fff);
  EXPECT_EQ(reduce_multiplier(0x7fffffff), 0x7fff);
  EXPECT_EQ(requant_int16x8(3, std::int64_t{1} << 30, 31), 2) << "3/2, ties up";
  EXPECT_EQ(requant_int16x8(-3, std::int64_t{1} << 30, 31), -1);
  EXPECT_EQ(requant_int16x8(std::int64_t{1} << 40, std::int64_t{1} << 30, 61), 1 << 9);
}

}  // namespace
}  // namespace weightmill
