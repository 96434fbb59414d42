#include "agreement.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

TEST(Agreement, OfEqualValuesIsInfinite) {
  const std::vector<float> reference{-1.0F, 0.5F, 2.0F};
  const std::vector<std::int32_t> codes{-2 + 3, 1 + 3, 4 + 3};
  const Agreement result = agreement(reference, codes, {2.0, 3});
  EXPECT_EQ(result.sqnr_db, std::numeric_limits<double>::infinity());
  EXPECT_EQ(result.max_error_steps, 0.0);
  EXPECT_DOUBLE_EQ(result.cosine, 1.0);
  EXPECT_EQ(result.count, 3u);
}

TEST(Agreement, CountsErrorsInStepsAndDecibels) {
  const std::vector<float> reference{3.0F, 4.0F};
  const std::vector<std::int32_t> codes{6, 9};  // 3.0 and 4.5
  const Agreement result = agreement(reference, codes, {2.0, 0});
  EXPECT_DOUBLE_EQ(result.max_error_steps, 1.0);
  EXPECT_DOUBLE_EQ(result.sqnr_db, 20.0);  // 5 against 0.5
  EXPECT_DOUBLE_EQ(result.cosine, 27.0 / (5.0 * std::sqrt(29.25)));
}

TEST(Agreement, TreatsChannelsApart) {
  const std::vector<float> reference{1.0F, 0.0F, 1.0F, 0.0F};
  const std::vector<std::int32_t> codes{1, 1, 1, 0};
  const auto result = channel_agreement(reference, codes, {1.0, 0}, 2);
  ASSERT_EQ(result.size(), 2u);
  EXPECT_EQ(result[0].max_error_steps, 0.0);
  EXPECT_EQ(result[1].max_error_steps, 1.0);
  EXPECT_EQ(result[1].cosine, 0.0);
  EXPECT_EQ(result[1].sqnr_db, -std::numeric_limits<double>::infinity());
}

TEST(Agreement, RefusesWhatCannotBeCompared) {
  const std::vector<float> reference{1.0F, 2.0F, 3.0F};
  const std::vector<std::int32_t> codes{1, 2, 3};
  EXPECT_THROW(agreement(std::span(reference).first(2), codes, {1.0, 0}), Error);
  EXPECT_THROW(agreement(reference, codes, {0.0, 0}), Error);
  EXPECT_THROW(channel_agreement(reference, codes, {1.0, 0}, 0), Error);
  EXPECT_THROW(channel_agreement(reference, codes, {1.0, 0}, 2), Error);
}

}  // namespace
}  // namespace weightmill
