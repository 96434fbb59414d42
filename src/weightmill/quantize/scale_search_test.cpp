#include "scale_search.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include <testkit/random.h>

namespace weightmill {
namespace {

using testkit::Random;

double error_of(std::span<const float> x, float scale, std::int32_t zero_point, DType type) {
  double sum = 0;
  for (const float value : x) {
    const double code =
        std::clamp<double>(std::nearbyint(value / scale), min_code(type) - zero_point, max_code(type) - zero_point);
    sum += std::pow(code * scale - value, 2);
  }
  return sum;
}

WeightRange range_of(std::span<const float> x) {
  std::vector<WeightRange> range(1);
  widen({}, 0, x, range);
  return range.front();
}

WeightScales searched(std::span<const float> x, DType type) {
  const std::vector<WeightRange> range{range_of(x)};
  const ScaleSearch search(range, type);
  ScaleSearch::Errors errors = search.no_errors();
  search.add_run(0, x, errors);
  return search.best(std::vector<double>(errors.begin(), errors.end()));
}

std::vector<float> heavy_tailed(Random& random, std::size_t n) {
  std::vector<float> x(n);
  for (float& value : x) value = static_cast<float>(std::pow(random.normal(), 3));
  return x;
}

TEST(ScaleSearch, LosesLessThanTheLargestWeightsScale) {
  Random random(1);
  for (const DType type : {DType::i4, DType::u4, DType::i8, DType::u8}) {
    for (const std::size_t n : {16, 32, 33, 128, 5000}) {
      const std::vector<float> x = heavy_tailed(random, n);
      const WeightGrid whole = grid_of(range_of(x), type);
      const WeightScales best = searched(x, type);
      const std::int32_t zero = best.zero_point.empty() ? 0 : best.zero_point.front();
      EXPECT_LE(error_of(x, best.scale.front(), zero, type), error_of(x, whole.scale, whole.zero_point, type) * 1.0001)
          << name_of(type) << " " << n;
    }
  }
}

TEST(ScaleSearch, TheLargestWeightHasTheLongerSideOfFourBits) {
  const std::vector<float> up{8, 1, 2, -3}, down{-8, 1, 2, -3};
  EXPECT_EQ(searched(up, DType::i4).scale.front(), -1.0F);
  EXPECT_EQ(searched(down, DType::i4).scale.front(), 1.0F);
}

TEST(ScaleSearch, GroupsSideBySideAreThoseOneByOne) {
  Random random(2);
  constexpr std::size_t kGroups = 37, kRows = 20;
  const std::vector<float> x = heavy_tailed(random, kRows * kGroups);
  for (const DType type : {DType::i4, DType::u4}) {
    std::vector<WeightRange> ranges(kGroups);
    const ScaleLayout layout = ScaleLayout::along({kRows, kGroups}, 1);
    widen(layout, 0, x, ranges);
    const ScaleSearch search(ranges, type);
    ScaleSearch::Errors errors = search.no_errors();
    add_candidate_errors(search, layout, 0, x, 0, errors);
    const WeightScales together = search.best(std::vector<double>(errors.begin(), errors.end()));
    for (std::size_t group = 0; group < kGroups; ++group) {
      std::vector<float> column;
      for (std::size_t row = 0; row < kRows; ++row) column.push_back(x[row * kGroups + group]);
      const WeightScales alone = searched(column, type);
      EXPECT_EQ(together.scale[group], alone.scale.front());
      if (!alone.zero_point.empty()) {
        EXPECT_EQ(together.zero_point[group], alone.zero_point.front());
      }
    }
  }
}

TEST(ScaleSearch, ChannelsOfGroupsAreThoseOneByOne) {
  Random random(3);
  constexpr std::size_t kGroups = 3, kRows = 5, kChannels = 7;
  const std::vector<float> x = heavy_tailed(random, kGroups * kRows * kChannels);
  std::vector<WeightRange> ranges(kGroups * kChannels);
  const ScaleLayout layout = ScaleLayout::along_groups({kGroups, kRows, kChannels}, 2);
  widen(layout, 0, x, ranges);
  const ScaleSearch search(ranges, DType::i4);
  ScaleSearch::Errors errors = search.no_errors();
  add_candidate_errors(search, layout, 0, std::span(x).first(40), 0, errors);
  add_candidate_errors(search, layout, 40, std::span(x).subspan(40), 0, errors);
  const WeightScales together = search.best(std::vector<double>(errors.begin(), errors.end()));
  for (std::size_t scale = 0; scale < kGroups * kChannels; ++scale) {
    std::vector<float> column;
    for (std::size_t row = 0; row < kRows; ++row)
      column.push_back(x[(scale / kChannels * kRows + row) * kChannels + scale % kChannels]);
    EXPECT_EQ(together.scale[scale], searched(column, DType::i4).scale.front());
  }
}

TEST(ScaleSearch, DeadAndExtremeGroupsHaveUsableScales) {
  constexpr float kMax = std::numeric_limits<float>::max(), kMin = std::numeric_limits<float>::min();
  for (const DType type : {DType::i4, DType::u4, DType::i8, DType::u8}) {
    for (const std::vector<float>& x :
         {std::vector<float>{0, 0}, {1e-40F, 0}, {kMax, -kMax}, {kMin * 8, kMin}, {-kMax, 1}}) {
      const WeightScales best = searched(x, type);
      EXPECT_TRUE(std::isnormal(best.scale.front())) << name_of(type) << x[0];
      if (!best.zero_point.empty()) {
        EXPECT_TRUE(best.zero_point[0] >= 0 && best.zero_point[0] <= max_code(type));
      }
    }
    EXPECT_EQ(searched(std::vector<float>{0, 0}, type).zero.size(), 1U);
    EXPECT_EQ(searched(std::vector<float>{1e-40F, 0}, type).negligible.size(), 1U);
  }
}

}  // namespace
}  // namespace weightmill
