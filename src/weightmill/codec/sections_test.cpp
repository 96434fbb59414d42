#include "sections.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include <testkit/random.h>
#include <testkit/weights.h>

namespace weightmill::mlw {
namespace {

/// docs/weight-stream.md §10, word for word and weight by weight: what the fast search is held to.
class SlowSearch {
 public:
  std::vector<std::size_t> run(const std::vector<std::int16_t>& v) {
    for (long i = 0; i < std::ssize(v); ++i) take(v, i);
    return starts;
  }

 private:
  static long bits(long k) {
    long b = 0;
    while (b < 8 && (1L << b) < k) ++b;
    return k <= 1 ? 0 : b;
  }

  void take(const std::vector<std::int16_t>& v, long i) {
    const int x = v[static_cast<std::size_t>(i)];
    const long apart = zeros > (i - begin) / 4 ? 1 : 0;
    if (has_palette && (!last.contains(x) || last[x] < begin)) {
      const long t = ++size - 1 - apart;
      if (t >= 0 && ((t - 1) & t) == 0 && (i - begin - zeros > 512 || size - apart > 32)) {
        starts.push_back(static_cast<std::size_t>(i));
        begin = i;
        has_palette = false;
        zeros = 0;
      }
    }
    last[x] = i;
    zeros += x == 0 ? 1 : 0;
    for (const long window : {32, 64, 128, 256, 512}) try_window(v, i, window, apart);
  }

  void try_window(const std::vector<std::int16_t>& v, long i, long window, long apart) {
    const long n = has_palette ? 2 * window : window;
    const long count = i - begin - zeros;
    if (count <= 0 || count % n != 0) return;
    long j = i;
    for (long counted = 0; j > begin; --j) {
      if (v[static_cast<std::size_t>(j)] != 0 && counted++ == n + 1) break;
    }
    const long distinct = std::count_if(last.begin(), last.end(), [&](const auto& entry) { return entry.second >= j; });
    const long old_bits = has_palette ? 15 * bits(size - apart) : 90;
    if (!has_palette && distinct - apart > 32) return;
    if (n * (old_bits - 15 * bits(distinct - apart)) / 16 - 8 * distinct - 20 <= 0) return;
    size = distinct;
    has_palette = true;
    begin = j;
    if (starts.back() != static_cast<std::size_t>(j)) starts.push_back(static_cast<std::size_t>(j));
    zeros = std::count(v.begin() + j, v.begin() + i + 1, std::int16_t{0});
  }

  std::vector<std::size_t> starts{0};
  std::map<int, long> last;
  long begin = 0, zeros = 0, size = 0;
  bool has_palette = false;
};

TEST(Sections, BeginWhereTheRuleSays) {
  for (const std::uint64_t seed : testkit::seeds(1500)) {
    SCOPED_TRACE(seed);
    const auto weights = testkit::random_weights(seed, seed % 50 == 0 ? 30000 : 2500);
    EXPECT_EQ(reference_section_starts(weights), SlowSearch().run(weights));
  }
}

/// Palettes that grow by one value now and then, between zeros that come and go: most of what the rule can do.
TEST(Sections, BeginWhereTheRuleSaysAmongFewValuesAndManyZeros) {
  for (const std::uint64_t seed : testkit::seeds(1500)) {
    SCOPED_TRACE(seed);
    testkit::Random random(seed);
    std::vector<std::int16_t> weights(static_cast<std::size_t>(random.integer(1, 4000)));
    std::int64_t n_values = 1, centre = 0;
    double zeros = 0;
    for (auto& weight : weights) {
      if (random.chance(0.01)) n_values = random.integer(1, random.chance(0.5) ? 6 : 80);
      if (random.chance(0.003)) centre = random.integer(-200, 120);
      if (random.chance(0.01)) zeros = random.chance(0.5) ? 0 : random.unit();
      weight = static_cast<std::int16_t>(random.chance(zeros) ? 0 : centre + random.integer(1, n_values));
    }
    EXPECT_EQ(reference_section_starts(weights), SlowSearch().run(weights));
  }
}

TEST(Sections, OfOneWeightOrNoneIsOne) {
  EXPECT_EQ(reference_section_starts(std::vector<std::int16_t>{5}), std::vector<std::size_t>{0});
  EXPECT_EQ(reference_section_starts({}), std::vector<std::size_t>{0});
}

}  // namespace
}  // namespace weightmill::mlw
