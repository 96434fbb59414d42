#include "broadcast.h"

#include <gtest/gtest.h>

#include "testkit/random.h"

namespace weightmill {
namespace {

using testkit::Random;

/// The definition, axis by axis.
std::uint64_t slow_index(const Shape& own, const Shape& target, std::uint64_t flat) {
  std::uint64_t index = 0, stride = 1;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const auto extent = static_cast<std::uint64_t>(target[target.size() - 1 - i]);
    const auto own_extent = i < own.size() ? static_cast<std::uint64_t>(own[own.size() - 1 - i]) : 1;
    const std::uint64_t at = flat % extent;
    flat /= extent;
    index += (own_extent == 1 ? 0 : at) * stride;
    stride *= own_extent;
  }
  return index;
}

TEST(Broadcast, IndexIsTheDefinitions) {
  for (const std::uint64_t seed : testkit::seeds(300)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Shape target(static_cast<std::size_t>(random.integer(0, 4)));
    for (auto& extent : target) extent = random.integer(1, 4);
    Shape own(target.end() - random.integer(0, static_cast<std::int64_t>(target.size())), target.end());
    for (auto& extent : own) extent = random.chance(0.5) ? 1 : extent;
    const BroadcastIndex index(own, target);
    std::uint64_t n = 1;
    for (const auto extent : target) n *= static_cast<std::uint64_t>(extent);
    std::vector<std::uint64_t> all(n);
    index.fill(0, all);
    for (std::uint64_t i = 0; i < n; ++i) {
      EXPECT_EQ(index.at(i), slow_index(own, target, i));
      EXPECT_EQ(all[i], index.at(i));
      EXPECT_EQ(index.at(i), index.at(i / index.run() * index.run()));
      EXPECT_EQ(index.at(i), index.at(i % index.period()));
    }
  }
}

TEST(Broadcast, AnAxisThatTheTargetLacksIsReadAtItsStart) {
  EXPECT_EQ(BroadcastIndex({3, 1}, {1, 8}).at(5), 0u);
  EXPECT_EQ(BroadcastIndex({3, 8}, {8}).at(5), 5u);
}

TEST(Broadcast, PeriodIsTheTailThatTheOwnAxesSpan) {
  EXPECT_EQ(BroadcastIndex({1, 4}, {3, 4}).period(), 4u);
  EXPECT_EQ(BroadcastIndex({3, 1}, {3, 4}).period(), 12u);
  EXPECT_EQ(BroadcastIndex({}, {3, 4}).period(), 1u);
}

TEST(Broadcast, ShapesFollowNumpysRule) {
  EXPECT_EQ(broadcast_shapes({3, 1}, {4}), (Shape{3, 4}));
  EXPECT_EQ(broadcast_shapes({}, {2}), (Shape{2}));
  EXPECT_EQ(broadcast_shapes({3}, {2}), std::nullopt);
}

}  // namespace
}  // namespace weightmill
