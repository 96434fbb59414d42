#include "bit_planes.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "on_each_target.h"
#include <testkit/random.h>

namespace weightmill {
namespace {

std::vector<std::uint16_t> random_values(testkit::Random& random, int max) {
  std::vector<std::uint16_t> values(static_cast<std::size_t>(random.integer(0, 300)));
  for (auto& value : values) value = static_cast<std::uint16_t>(random.integer(0, random.chance(0.3) ? max : max / 8));
  return values;
}

struct Planes {
  explicit Planes(std::size_t n) : position(quotient_plane_bytes(n)), last(position), continuation(position) {}
  QuotientPlanes pointers() { return {position.data(), last.data(), continuation.data()}; }
  std::vector<std::uint8_t> position, last, continuation;
};

/// The first `n_bits`, and zeros for the rest of the byte and eight bytes more, as who reads words may see them.
std::vector<std::uint8_t> head(const std::vector<std::uint8_t>& plane, std::size_t n_bits) {
  return {plane.begin(), plane.begin() + static_cast<std::ptrdiff_t>(n_bits / 8 + 9)};
}

void expect_same_quotients(const std::vector<std::uint16_t>& values, unsigned divisor, bool truncated) {
  Planes expected(values.size()), found(values.size());
  const QuotientBits bits = write_quotients_scalar(values, divisor, truncated, expected.pointers());
  const QuotientBits found_bits = write_quotients(values, divisor, truncated, found.pointers());
  ASSERT_EQ(found_bits.n_positions, bits.n_positions);
  ASSERT_EQ(found_bits.n_continuations, bits.n_continuations);
  EXPECT_EQ(head(found.position, bits.n_positions), head(expected.position, bits.n_positions));
  EXPECT_EQ(head(found.last, bits.n_positions), head(expected.last, bits.n_positions));
  EXPECT_EQ(head(found.continuation, bits.n_continuations), head(expected.continuation, bits.n_continuations));
}

TEST(BitPlanes, AllTargetsAgreeOnQuotients) {
  on_each_target([] {
    for (const std::uint64_t seed : testkit::seeds(300)) {
      SCOPED_TRACE(seed);
      testkit::Random random(seed);
      const auto divisor = static_cast<unsigned>(random.integer(0, 5));
      const bool truncated = random.chance(0.4);
      const int max = std::min(511, truncated ? (3 << divisor) - 1 : (32 << divisor) - 1);
      expect_same_quotients(random_values(random, max), divisor, truncated);
    }
  });
}

TEST(BitPlanes, AllTargetsAgreeOnLowBits) {
  on_each_target([] {
    for (const std::uint64_t seed : testkit::seeds(300)) {
      SCOPED_TRACE(seed);
      testkit::Random random(seed);
      const auto values = random_values(random, 511);
      const auto width = static_cast<unsigned>(random.integer(0, 9));
      std::vector<std::uint8_t> expected((values.size() * width + 7) / 8 + kBitSlack), found(expected);
      write_low_bits_scalar(values, width, expected.data());
      write_low_bits(values, width, found.data());
      EXPECT_EQ(head(found, values.size() * width), head(expected, values.size() * width));

      auto high = values;
      for (auto& value : high) value = static_cast<std::uint16_t>(value >> width);
      EXPECT_EQ(join_low_bits(high, width, found.data()),
                values.empty() ? 0 : *std::max_element(values.begin(), values.end()));
      EXPECT_EQ(high, values);
    }
  });
}

TEST(BitPlanes, WritesPositionsOfEachQuotient) {
  Planes planes(4);
  const std::uint16_t values[] = {0, 1, 2, 3};  // 0 | 1/0 | 1/1 0 | 1/1 1/0
  const QuotientBits bits = write_quotients_scalar(values, 0, false, planes.pointers());
  EXPECT_EQ(bits.n_positions, 6u);
  EXPECT_EQ(bits.n_continuations, 4u);
  EXPECT_EQ(planes.position[0], 0b110110);
  EXPECT_EQ(planes.last[0], 0b101011);
  EXPECT_EQ(planes.continuation[0], 0b0110);
}

}  // namespace
}  // namespace weightmill
