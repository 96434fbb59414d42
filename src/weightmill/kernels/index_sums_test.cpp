#include "index_sums.h"

#include <vector>

#include <gtest/gtest.h>

#include "testkit/random.h"

#include "on_each_target.h"

namespace weightmill {
namespace {

std::vector<std::int16_t> random_weights(testkit::Random& random, std::size_t n) {
  const auto reach = random.integer(0, 255);
  const double zeros = random.chance(0.5) ? random.unit() : 0;
  std::vector<std::int16_t> weights(n);
  for (auto& weight : weights) {
    weight = random.chance(zeros) ? std::int16_t{0} : static_cast<std::int16_t>(random.integer(-reach, reach));
  }
  return weights;
}

void expect_equal(const IndexSums& found, const IndexSums& wanted) {
  EXPECT_EQ(found.n, wanted.n);
  EXPECT_EQ(found.n_zero, wanted.n_zero);
  EXPECT_EQ(found.quotients, wanted.quotients);
  EXPECT_EQ(found.above, wanted.above);
  EXPECT_EQ(found.largest, wanted.largest);
}

TEST(IndexSums, FollowTheirDefinition) {
  const std::vector<std::int16_t> weights{0, 1, -1, 5, -255};
  const IndexSums sums = index_sums_scalar(weights, 2);  // 0, 0, 1, 8, 509
  EXPECT_EQ(sums.n, 5u);
  EXPECT_EQ(sums.n_zero, 1u);
  EXPECT_EQ(sums.quotients[0], 518u);
  EXPECT_EQ(sums.quotients[3], 1u + 63u);
  EXPECT_EQ(sums.above[0], 3u);
  EXPECT_EQ(sums.above[1], 2u);
  EXPECT_EQ(sums.largest, 509u);
}

TEST(IndexSums, AreTheSameOnEveryTarget) {
  testkit::Random random(11);
  for (int round = 0; round < 300; ++round) {
    const auto n = static_cast<std::size_t>(random.integer(0, round % 10 == 0 ? 1024 : 150));
    const auto weights = random_weights(random, n);
    for (unsigned offset = 0; offset <= 2; ++offset) {
      const IndexSums wanted = index_sums_scalar(weights, offset);
      on_each_target([&] { expect_equal(index_sums(weights, offset), wanted); });
    }
  }
}

TEST(IndexSums, HoldTheLargestStretchOfTheLargestValues) {
  const std::vector<std::int16_t> weights(kMaxSumWeights, -255);
  on_each_target([&] { expect_equal(index_sums(weights, 0), index_sums_scalar(weights, 0)); });
}

}  // namespace
}  // namespace weightmill
