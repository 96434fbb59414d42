#include "cheapest_path.h"

#include "lane_lead.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "on_each_target.h"
#include <testkit/random.h>

namespace weightmill {
namespace {

using Lane = std::array<std::int8_t, kPathLanes>;

/// Costs of 40 values in 13 lanes: one that can always be taken, others that are cheaper, equal or impossible.
std::vector<Lane> random_bits(testkit::Random& random) {
  std::vector<Lane> bits(40);
  for (Lane& lane : bits) {
    lane.fill(kNoWay);
    for (std::size_t i = 0; i < 13; ++i) {
      lane[i] = static_cast<std::int8_t>(random.chance(0.1) ? kNoWay : random.integer(1, random.chance(0.2) ? 100 : 8));
    }
    lane[4] = static_cast<std::int8_t>(random.integer(3, 20));
  }
  return bits;
}

/// Values that come in stretches, so that now one lane is the cheapest for long and now another every few values.
std::vector<std::uint16_t> random_values(testkit::Random& random) {
  std::vector<std::uint16_t> values(static_cast<std::size_t>(random.integer(1, 700)));
  std::int64_t low = 0, high = 39;
  for (auto& value : values) {
    if (random.chance(0.02)) {
      low = random.integer(0, 39);
      high = random.integer(low, 39);
    }
    value = static_cast<std::uint16_t>(random.integer(low, high));
  }
  return values;
}

TEST(CheapestPath, AllTargetsAgree) {
  on_each_target([] {
    for (const std::uint64_t seed : testkit::seeds(300)) {
      SCOPED_TRACE(seed);
      testkit::Random random(seed);
      const auto bits = random_bits(random);
      const auto values = random_values(random);
      LaneCosts costs{bits, {}};
      costs.extra[4] = static_cast<std::int8_t>(random.integer(0, 5));
      const auto switch_bits = static_cast<std::int8_t>(random.chance(0.3) ? 0 : random.integer(0, kMaxSwitchBits));
      std::vector<PathBlock> expected((values.size() + kPathBlock - 1) / kPathBlock + 1, PathBlock{});
      for (auto& lead : expected[0].lead) lead = static_cast<std::int8_t>(random.integer(0, kMaxSwitchBits + 1));
      expected[0].lead[3] = 0;
      auto found = expected;
      cheapest_path_scalar(values, costs, switch_bits, expected);
      cheapest_path(values, costs, switch_bits, found);
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].lead, expected[i].lead) << "block " << i;
        EXPECT_EQ(found[i].switched, expected[i].switched) << "block " << i;
      }
    }
  });
}

TEST(LaneLead, AllTargetsAgree) {
  on_each_target([] {
    for (const std::uint64_t seed : testkit::seeds(300)) {
      SCOPED_TRACE(seed);
      testkit::Random random(seed);
      const auto bits = random_bits(random);
      auto values = random_values(random);
      values.resize(std::min(values.size(), kPathBlock));
      LaneLeads expected{};
      for (auto& lead : expected.lead) lead = static_cast<std::int16_t>(random.integer(-100, 16000));
      LaneLeads found = expected;
      follow_active_lane_scalar(values, {bits, {}}, 4, expected);
      follow_active_lane(values, {bits, {}}, 4, found);
      EXPECT_EQ(found.lead, expected.lead);
      EXPECT_EQ(found.lowest, expected.lowest);
      EXPECT_EQ(found.unusable, expected.unusable);
    }
  });
}

TEST(CheapestPath, EntersALaneFromTheCheapestOneWhereThatCostsLess) {
  Lane lead{};
  lead.fill(41);
  lead[2] = 0;
  lead[5] = 40;
  Lane bits;
  bits.fill(10);
  path_step(bits, Lane{}, 40, lead);
  EXPECT_EQ(lead[2], 0);
  EXPECT_EQ(lead[5], 40);
  EXPECT_EQ(lead[0], 40);
}

}  // namespace
}  // namespace weightmill
