#include "expected_rescale.h"

#include <cmath>

#include <gtest/gtest.h>

#include <testkit/random.h>

namespace weightmill::verify {
namespace {

TEST(LeadingBits, AreTheRoundedMantissa) {
  EXPECT_EQ(leading_bits(0.0), (FixedPoint{0, 31}));
  EXPECT_EQ(leading_bits(1.0), (FixedPoint{1 << 30, 30}));
  EXPECT_EQ(leading_bits(0.75), (FixedPoint{3 << 29, 31}));
  EXPECT_EQ(leading_bits(std::nextafter(1.0, 0.0)), (FixedPoint{std::int64_t{1} << 31, 31}));  // not renormalised
  EXPECT_EQ(leading_bits(0x1p-1070), (FixedPoint{1 << 30, 1100}));                             // subnormal
}

TEST(LeadingBits, AreWithinHalfAStepOfX) {
  for (const auto seed : testkit::seeds(2000)) {
    testkit::Random random(seed);
    const double x = std::ldexp(0.5 + random.unit() / 2, static_cast<int>(random.integer(-60, 60)));
    const FixedPoint f = leading_bits(x);
    EXPECT_LE(std::abs(std::ldexp(static_cast<double>(f.multiplier), -f.shift) - x), std::ldexp(0.5, -f.shift)) << seed;
  }
}

PackedLayer layer_of(ScalingRule rule, DType ifm) {
  PackedLayer layer;
  layer.kind = OpKind::conv_2d;
  layer.scaling = rule;
  layer.ifm_dtype = ifm;
  layer.ifm_scale = 0.5f;
  layer.ofm_scale = 0.25f;
  return layer;
}

TEST(ExpectedRescale, IsExactForPowersOfTwo) {
  for (const ScalingRule rule : {ScalingRule::v2020, ScalingRule::vela5, ScalingRule::regor}) {
    EXPECT_EQ(expected_rescale(layer_of(rule, DType::i8), 0.125f, false), (FixedPoint{1 << 30, 32}));
  }
}

TEST(ExpectedRescale, IsReducedForWideAccumulators) {
  EXPECT_EQ(expected_rescale(layer_of(ScalingRule::v2020, DType::i16), 0.125f, false), (FixedPoint{1 << 14, 16}));
  EXPECT_EQ(expected_rescale(layer_of(ScalingRule::vela5, DType::i16), 0.125f, true), (FixedPoint{1 << 14, 16}));
  EXPECT_EQ(expected_rescale(layer_of(ScalingRule::vela5, DType::i16), 0.125f, false), (FixedPoint{1 << 30, 32}));
}

TEST(ExpectedRescale, VanishesOrIsRepairedWhereTheShiftDoesNotFit) {
  EXPECT_EQ(expected_rescale(layer_of(ScalingRule::vela5, DType::i8), 0x1p-40f, false), (FixedPoint{0, 16}));
  EXPECT_EQ(expected_rescale(layer_of(ScalingRule::regor, DType::i8), 0x1p-40f, false), (FixedPoint{1 << 24, 63}));
  EXPECT_EQ(expected_rescale(layer_of(ScalingRule::regor, DType::i8), 0x1p-100f, false), (FixedPoint{0, 0}));
}

}  // namespace
}  // namespace weightmill::verify
