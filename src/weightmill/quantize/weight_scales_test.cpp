#include "weight_scales.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include <testkit/random.h>

namespace weightmill {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testkit::Random;

std::vector<WeightRange> ranges_of(const ScaleLayout& layout, std::size_t n_scales, std::span<const float> x) {
  std::vector<WeightRange> ranges(n_scales);
  EXPECT_EQ(widen(layout, 0, x, ranges), std::nullopt);
  return ranges;
}

TEST(WeightScales, SymmetricScaleIsThePeakOver127) {
  const std::vector<WeightRange> ranges{{-2.0F, 1.0F}, {-0.5F, 0.75F}};
  const WeightScales scales = scales_for(ranges, DType::i8);
  EXPECT_THAT(scales.scale, ElementsAre(2.0F / 127, 0.75F / 127));
  EXPECT_THAT(scales.zero_point, IsEmpty());
  EXPECT_THAT(scales_for(ranges, DType::i4).scale, ElementsAre(2.0F / 7, 0.75F / 7));
}

TEST(WeightScales, UnsignedCodesHaveAnIntegerZeroPointInTheirRange) {
  const std::vector<WeightRange> ranges{{-1.0F, 3.0F}, {0.0F, 5.0F}, {-5.0F, 0.0F}};
  const WeightScales scales = scales_for(ranges, DType::u8);
  EXPECT_THAT(scales.zero_point, ElementsAre(64, 0, 255));
  EXPECT_FLOAT_EQ(scales.scale[0], 4.0F / 255);
  EXPECT_THAT(scales_for(ranges, DType::u4).zero_point, ElementsAre(4, 0, 15));
}

TEST(WeightScales, DeadChannelsAreNamedAndHaveAScaleThatDividesWell) {
  const std::vector<WeightRange> ranges{{0.0F, 0.0F}, {-1e-39F, 0.0F}, {0.0F, 1.0F}, {0.0F, 1e-36F}};
  for (const DType type : {DType::i8, DType::u8, DType::i4, DType::u4}) {
    const WeightScales scales = scales_for(ranges, type);
    EXPECT_THAT(scales.zero, ElementsAre(0));
    EXPECT_EQ(scales.negligible.front(), 1U);
    for (const float scale : scales.scale) EXPECT_TRUE(std::isnormal(scale) && scale > 0);
  }
}

TEST(WeightScales, EveryCodeStandsForAFiniteNumber) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const std::vector<WeightRange> ranges{{-kMax, kMax}, {0, kMax}, {-kMax, 0}, {-kMax, kMax / 3}};
  for (const DType type : {DType::i8, DType::u8, DType::i4, DType::u4}) {
    const WeightScales scales = scales_for(ranges, type);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const std::int32_t zero = scales.zero_point.empty() ? 0 : scales.zero_point[i];
      const std::int32_t lowest = is_signed_integer(type) ? -max_code(type) : -zero;
      EXPECT_TRUE(std::isfinite(static_cast<float>(lowest) * scales.scale[i])) << name_of(type) << i;
      EXPECT_TRUE(std::isfinite(static_cast<float>(max_code(type) - zero) * scales.scale[i])) << name_of(type) << i;
    }
  }
}

TEST(WeightScales, NamesTheFirstWeightThatIsNotFinite) {
  std::vector<float> x(100, 1.0F);
  x[70] = std::numeric_limits<float>::quiet_NaN();
  x[42] = -std::numeric_limits<float>::infinity();
  std::vector<WeightRange> ranges(1);
  EXPECT_EQ(widen({}, 0, x, ranges), 42U);
}

/// Ranges, codes and errors one weight at a time, found by index arithmetic on [outer, length, inner].
std::size_t scale_of(const ScaleLayout& layout, std::size_t i) {
  if (layout.block == 0) return 0;
  const std::size_t inner = i % layout.inner, along = i / layout.inner % layout.length;
  if (layout.outer_run > 0) return i / layout.inner / layout.length / layout.outer_run * layout.length + along;
  if (!layout.per_inner) return along;
  return (i / layout.inner / layout.length * layout.n_blocks() + along / layout.block) * layout.inner + inner;
}

std::size_t n_scales_of(const ScaleLayout& layout, std::size_t n) {
  std::size_t n_scales = 1;
  for (std::size_t i = 0; i < n; ++i) n_scales = std::max(n_scales, scale_of(layout, i) + 1);
  return n_scales;
}

ScaleLayout random_layout(Random& random, const Shape& shape) {
  const auto axis = static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(shape.size()) - 1));
  switch (random.integer(0, 3)) {
    case 0:
      return {};
    case 2:
      return ScaleLayout::along_groups(shape, std::max<std::size_t>(axis, 1));
    case 1:
      return ScaleLayout::along(shape, axis);
    default:
      return ScaleLayout::along(shape, axis, static_cast<std::uint64_t>(random.integer(2, 20)));
  }
}

TEST(WeightScales, RangesAndErrorsAreThoseOfEachWeightAlone) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    const Shape shape{random.integer(1, 5), random.integer(1, 40), random.integer(1, 60)};
    const ScaleLayout layout = random_layout(random, shape);
    const auto n = static_cast<std::size_t>(shape[0] * shape[1] * shape[2]);
    std::vector<float> x(n);
    for (float& value : x) value = static_cast<float>(random.normal());
    const std::size_t n_scales = n_scales_of(layout, n);
    const std::vector<WeightRange> ranges = ranges_of(layout, n_scales, x);
    std::vector<WeightRange> expected(n_scales);
    for (std::size_t i = 0; i < n; ++i) {
      WeightRange& range = expected[scale_of(layout, i)];
      range = {std::min(range.low, x[i]), std::max(range.high, x[i])};
    }
    for (std::size_t s = 0; s < n_scales; ++s) {
      ASSERT_EQ(ranges[s].low, expected[s].low) << to_string(shape);
      ASSERT_EQ(ranges[s].high, expected[s].high) << to_string(shape);
    }
    const DType type = std::array{DType::i8, DType::u8, DType::i4, DType::u4}[static_cast<std::size_t>(round) % 4];
    const WeightScales scales = scales_for(ranges, type);
    std::vector<WeightError> errors(n_scales);
    add_error(layout, scales, type, 0, x, errors);
    std::vector<WeightError> wanted(n_scales);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t s = scale_of(layout, i);
      const double zero = scales.zero_point.empty() ? 0 : scales.zero_point[s];
      const double code =
          std::clamp<double>(std::nearbyint(x[i] / scales.scale[s]), min_code(type) - zero, max_code(type) - zero);
      const double difference = static_cast<double>(static_cast<float>(code) * scales.scale[s]) - x[i];
      wanted[s].merge(
          {static_cast<double>(x[i]) * x[i], difference * difference, std::abs(difference) / scales.scale[s]});
    }
    for (std::size_t s = 0; s < n_scales; ++s) {
      ASSERT_NEAR(errors[s].noise, wanted[s].noise, 1e-12 * wanted[s].signal);
      ASSERT_NEAR(errors[s].signal, wanted[s].signal, 1e-12 * wanted[s].signal);
      ASSERT_EQ(errors[s].max_steps, wanted[s].max_steps);
      ASSERT_LE(errors[s].max_steps, 0.5 + 1e-4) << "rounding alone must decide";
    }
  }
}

TEST(WeightScales, SqnrIsInfiniteWithoutNoise) {
  EXPECT_EQ(WeightError{}.sqnr_db(), std::numeric_limits<double>::infinity());
  EXPECT_DOUBLE_EQ((WeightError{100, 1, 0.5}.sqnr_db()), 20);
}

}  // namespace
}  // namespace weightmill
