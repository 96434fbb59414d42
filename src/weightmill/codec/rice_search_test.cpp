#include "rice_search.h"

#include <algorithm>
#include <array>
#include <optional>

#include <gtest/gtest.h>

#include <testkit/random.h>

namespace weightmill::mlw {
namespace {

using Bits = std::vector<std::int64_t>;  // of one value in each code; 10000: impossible
using Path = std::vector<std::pair<unsigned, std::size_t>>;

constexpr std::int64_t kImpossible = 10000;

Bits index_bits_of(unsigned index, unsigned uncompressed) {
  Bits bits;
  for (unsigned number = 0; number < WeightCode::kCount; ++number) {
    const WeightCode code(number);
    bits.push_back(code.can_code(index) ? weight_bits(code, index, uncompressed) : kImpossible);
  }
  return bits;
}

Bits run_bits_of(std::uint32_t run) {
  Bits bits;
  for (unsigned divisor = 0; divisor < RunCode::kCount; ++divisor) {
    bits.push_back(static_cast<std::int64_t>(run_bits(RunCode(divisor), run)));
  }
  return bits;
}

/// docs/weight-stream.md §13, value by value: what the fast search is held to.
Path slow_shortest_path(const std::vector<Bits>& values, const std::vector<std::size_t>& free_ends) {
  std::vector<std::int64_t> cost(values[0].size(), 0);
  std::vector<std::vector<unsigned>> from;
  std::size_t next_end = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto best = static_cast<unsigned>(std::min_element(cost.begin(), cost.end()) - cost.begin());
    const std::int64_t lowest = cost[best];
    const bool is_free = next_end < free_ends.size() && free_ends[next_end] == i + 1;
    if (is_free) ++next_end;
    auto& sources = from.emplace_back();
    for (unsigned k = 0; k < cost.size(); ++k) {
      const std::int64_t changed = lowest + (is_free ? 0 : 40);
      sources.push_back(changed < cost[k] ? best : k);
      cost[k] = std::min(changed, cost[k]) + values[i][k];
    }
  }
  auto now = static_cast<unsigned>(std::min_element(cost.begin(), cost.end()) - cost.begin());
  Path path{{now, values.size()}};
  for (std::size_t i = values.size(); i-- > 0;) {
    if (from[i][now] != now) path.emplace_back(now = from[i][now], i);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

/// docs/weight-stream.md §14, value by value.
Path slow_greedy_pass(const std::vector<Bits>& values) {
  const std::size_t n_codes = values[0].size();
  std::vector<std::int64_t> total(n_codes, 0);
  std::vector<std::size_t> reset(n_codes, 0);
  std::vector<bool> usable(n_codes, false);
  std::optional<std::size_t> active;
  std::int64_t active_total = 0;
  Path path;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::optional<std::size_t> best;
    for (std::size_t k = 0; k < n_codes; ++k) {
      const bool can = values[i][k] != kImpossible;
      if (can && !usable[k]) total[k] = active_total;
      total[k] += can ? values[i][k] : 40;
      if (!can) reset[k] = i + 1;
      usable[k] = can;
      if (can && (!best || total[k] < total[*best])) best = k;
    }
    if (!active || !usable[*active] || (*best != *active && total[*best] + 40 < active_total)) {
      const bool takes_over = active && total[*best] < total[*active] && reset[*best] <= reset[*active];
      if (active && !takes_over) path.emplace_back(*active, i);
      active = best;
    }
    active_total = total[*active];
  }
  if (path.empty() || path.back().first != *active) path.emplace_back(*active, 0);
  path.back().second = values.size();
  return path;
}

template <class Code>
Path path_of(const std::vector<Segment<Code>>& segments) {
  Path path;
  for (const auto& segment : segments) path.emplace_back(segment.code.number(), segment.end);
  return path;
}

/// Indices whose range changes now and then, with rare large ones: codes take turns, and ties are common.
std::vector<std::uint16_t> random_indices(testkit::Random& random) {
  std::vector<std::uint16_t> indices(static_cast<std::size_t>(random.integer(1, random.chance(0.2) ? 3000 : 400)));
  const double change = random.chance(0.5) ? 0.02 : 0.002;
  std::int64_t most = 511;
  for (auto& index : indices) {
    if (random.chance(change)) most = std::int64_t{1} << random.integer(0, 9);
    index = static_cast<std::uint16_t>(random.integer(0, random.chance(0.002) ? 511 : most - 1));
  }
  return indices;
}

const std::array<unsigned, 6> kUncompressed{1, 3, 5, 7, 9, 100};

TEST(RiceSearch, FindsTheSegmentsOfTheRules) {
  for (const std::uint64_t seed : testkit::seeds(1500)) {
    SCOPED_TRACE(seed);
    testkit::Random random(seed);
    const auto indices = random_indices(random);
    const unsigned uncompressed = kUncompressed[static_cast<std::size_t>(random.integer(0, 5))];
    std::vector<Bits> bits;
    for (const auto index : indices) bits.push_back(index_bits_of(index, uncompressed));
    EXPECT_EQ(path_of(reference_weight_segments(indices, uncompressed)), slow_shortest_path(bits, {}));
    EXPECT_EQ(path_of(regor_weight_segments(indices, uncompressed)), slow_greedy_pass(bits));
  }
}

TEST(RiceSearch, FindsTheRunSegmentsOfTheRules) {
  for (const std::uint64_t seed : testkit::seeds(1500)) {
    SCOPED_TRACE(seed);
    testkit::Random random(seed);
    std::vector<std::uint32_t> runs(static_cast<std::size_t>(random.integer(1, 600)));
    std::int64_t most = 4;
    for (auto& run : runs) {
      if (random.chance(0.02)) most = std::int64_t{1} << random.integer(0, random.chance(0.1) ? 20 : 6);
      run = static_cast<std::uint32_t>(random.integer(0, most));
    }
    std::vector<Bits> bits;
    for (const auto run : runs) bits.push_back(run_bits_of(run));
    WeightSegments weight_segments;
    std::vector<std::size_t> ends;
    for (std::size_t end = 0; end + 1 < runs.size();) {
      end = std::min(runs.size() - 1, end + static_cast<std::size_t>(random.integer(1, 200)));
      weight_segments.push_back({WeightCode(0), end});
      ends.push_back(end);
    }
    EXPECT_EQ(path_of(reference_run_segments(runs, weight_segments)), slow_shortest_path(bits, ends));
    EXPECT_EQ(path_of(regor_run_segments(runs)), slow_greedy_pass(bits));
  }
}

}  // namespace
}  // namespace weightmill::mlw
