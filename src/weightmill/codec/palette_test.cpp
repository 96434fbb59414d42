#include "palette.h"

#include <vector>

#include <gtest/gtest.h>

namespace weightmill::mlw {
namespace {

Histogram histogram_of(const std::vector<std::int16_t>& weights) {
  Histogram histogram;
  histogram.count(weights);
  return histogram;
}

PaletteChoice choose(const std::vector<std::int16_t>& weights, bool zero_runs = false,
                     Coverage coverage = Coverage::more_than_half) {
  return choose_palette(histogram_of(weights), zero_runs, coverage);
}

std::vector<unsigned> entries_of(const Palette& palette) {
  return {palette.entries.begin(), palette.entries.begin() + palette.size};
}

/// `n_values` values that occur once each, from +1 on.
std::vector<std::int16_t> ramp(int n_values) {
  std::vector<std::int16_t> weights;
  for (int i = 1; i <= n_values; ++i) weights.push_back(static_cast<std::int16_t>(i));
  return weights;
}

TEST(CodeValue, FoldsAndUnfolds) {
  EXPECT_EQ(fold(0), 0u);
  EXPECT_EQ(fold(1), 2u);
  EXPECT_EQ(fold(-1), 3u);
  EXPECT_EQ(fold(-255), kMaxCodeValue);
  EXPECT_EQ(unfold(1), 0);
  for (int weight = -kMaxWeight; weight <= kMaxWeight; ++weight) EXPECT_EQ(unfold(fold(weight)), weight);
}

TEST(Histogram, CountsLongInputsLikeShortOnes) {
  std::vector<std::int16_t> weights;
  for (int i = 0; i < 5003; ++i) weights.push_back(static_cast<std::int16_t>(i % 7 - 255));
  const Histogram histogram = histogram_of(weights);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(histogram[i - 255], i < 5003 % 7 ? 715u : 714u);
  EXPECT_EQ(histogram[0], 0u);
}

TEST(Palette, HasTheMostCommonFirstAndOfEquallyCommonOnesTheLargerCodeValue) {
  const auto choice = choose({1, 2, 2, -3, -3, 5});
  EXPECT_EQ(entries_of(choice.palette), (std::vector<unsigned>{fold(-3), fold(2), fold(5), fold(1)}));
  EXPECT_EQ(choice.palette.direct_offset, 2u);
  EXPECT_EQ(choice.palette.entry_bits, 4u);
  EXPECT_EQ(choice.palette.index_bits(), 2u);
  EXPECT_TRUE(choice.only_palette);
  EXPECT_EQ(choice.index_of[2 + kMaxWeight], 1u);
}

TEST(Palette, OfOneValueGetsAZeroAsSecondEntry) {
  EXPECT_EQ(entries_of(choose({9, 9}).palette), (std::vector<unsigned>{fold(9), 0}));
}

TEST(Palette, IsLeftOutWhereItCoversHalfOrLess) {
  EXPECT_EQ(choose(ramp(63)).palette.size, 32u);
  EXPECT_EQ(choose(ramp(64)).palette.size, 0u);
  EXPECT_EQ(choose(ramp(64), false, Coverage::at_least_half).palette.size, 32u);
  EXPECT_EQ(choose(ramp(66), false, Coverage::at_least_half).palette.size, 0u);
  EXPECT_EQ(choose(ramp(64)).palette.entry_bits, 8u);  // for indices up to fold(64)
}

TEST(Palette, LeavesRoomForTheLargestDirectIndex) {
  std::vector<std::int16_t> weights = ramp(40);
  weights.insert(weights.end(), 500, 40);
  weights.push_back(255);  // code value 510 leaves room for one entry: too few to send
  EXPECT_EQ(choose(weights).palette.size, 0u);
  weights.back() = 254;
  EXPECT_EQ(choose(weights).palette.size, 3u);
}

TEST(Palette, OfNothingButRunsOfZerosIsEmpty) {
  const auto choice = choose({0, 0, 0}, true);
  EXPECT_TRUE(choice.only_zeros);
  EXPECT_EQ(choice.palette.size, 0u);
  EXPECT_EQ(choice.palette.direct_offset, 0u);
  EXPECT_EQ(choice.index_of[kMaxWeight], 1u);
}

}  // namespace
}  // namespace weightmill::mlw
