#include "fake_quantize.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "on_each_target.h"
#include "testkit/random.h"

namespace weightmill {
namespace {

using testkit::Random;

/// Bytes of `values`, one byte off any alignment.
std::vector<std::uint8_t> unaligned(const std::vector<float>& values) {
  std::vector<std::uint8_t> bytes(4 * values.size() + 1);
  if (!values.empty()) std::memcpy(bytes.data() + 1, values.data(), 4 * values.size());
  return bytes;
}

float random_weight(Random& random) {
  if (random.chance(0.02)) return std::numeric_limits<float>::infinity();
  if (random.chance(0.02)) return std::numeric_limits<float>::quiet_NaN();
  if (random.chance(0.1)) return static_cast<float>(random.integer(-40, 40)) * 0.25f;  // limits and ties are hit
  return static_cast<float>(random.normal() * 3);
}

CodeLimits random_limits(Random& random) {
  const auto low = static_cast<float>(random.integer(-20, 4)) * 0.25f;
  const float high = low + static_cast<float>(random.integer(-3, 40)) * 0.25f;
  return {std::min(low, high), std::max(low, high), low, high - low};
}

CodeRule random_rule(Random& random) {
  const auto steps = random.integer(2, 255);
  return {.steps = static_cast<float>(steps),
          .low = random.chance(0.3) ? 0 : -static_cast<std::int32_t>((steps + 1) / 2),
          .half_up = random.chance(0.3),
          .in_f16 = random.chance(0.3)};
}

TEST(FakeQuantizeKernel, AllTargetsAgreeBitForBit) {
  for (const std::uint64_t seed : testkit::seeds(200)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<float> weights(static_cast<std::size_t>(random.integer(0, 150)));
    const CodeLimits limits = random_limits(random);
    const CodeRule rule = random_rule(random);
    std::vector<float> below, above, origin, range;
    for (float& weight : weights) {
      weight = random_weight(random);
      const CodeLimits own = random_limits(random);
      below.push_back(own.below), above.push_back(own.above), origin.push_back(own.origin), range.push_back(own.range);
    }
    const auto bytes = unaligned(weights);
    const CodeLimitRows rows{below, above, origin, range};
    std::vector<std::uint8_t> want_run(weights.size()), want_each(weights.size());
    const bool run_nan = quantize_run_scalar(bytes.data() + 1, limits, rule, want_run);
    const bool each_nan = quantize_each_scalar(bytes.data() + 1, rows, rule, want_each);
    on_each_target([&] {
      std::vector<std::uint8_t> codes(weights.size());
      EXPECT_EQ(quantize_run(bytes.data() + 1, limits, rule, codes), run_nan);
      EXPECT_EQ(codes, want_run);
      EXPECT_EQ(quantize_each(bytes.data() + 1, rows, rule, codes), each_nan);
      EXPECT_EQ(codes, want_each);
    });
  }
}

TEST(FakeQuantizeKernel, TiesGoToEvenOrUp) {
  const std::vector<float> weights{0.5f, 1.5f, 2.5f, 254.5f};
  const auto bytes = unaligned(weights);
  const CodeLimits limits{0, 255, 0, 255};
  std::vector<std::uint8_t> codes(4);
  EXPECT_FALSE(quantize_run(bytes.data() + 1, limits, {.steps = 255, .low = 0}, codes));
  EXPECT_EQ(codes, (std::vector<std::uint8_t>{0, 2, 2, 254}));
  EXPECT_FALSE(quantize_run(bytes.data() + 1, limits, {.steps = 255, .low = 0, .half_up = true}, codes));
  EXPECT_EQ(codes, (std::vector<std::uint8_t>{1, 2, 3, 255}));
}

TEST(FakeQuantizeKernel, WidensEveryFloat16AndBackOnAllTargets) {
  std::vector<std::uint8_t> bytes(2 * 65536 + 1);
  for (std::size_t i = 0; i < 65536; ++i) {
    bytes[2 * i + 1] = static_cast<std::uint8_t>(i & 255);
    bytes[2 * i + 2] = static_cast<std::uint8_t>(i >> 8);
  }
  on_each_target([&] {
    std::vector<float> wide(65536), brain(65536);
    widen_f16(bytes.data() + 1, wide);
    widen_bf16(bytes.data() + 1, brain);
    for (std::uint32_t i = 0; i < 65536; ++i) {
      const auto half = std::bit_cast<_Float16>(static_cast<std::uint16_t>(i));
      const auto want = static_cast<float>(half);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(brain[i]), i << 16);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(wide[i])) << i;
        continue;
      }
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::bit_cast<std::uint32_t>(want)) << i;
    }
  });
}

TEST(FakeQuantizeKernel, RoundsEachOperationToFloat16) {
  Random random(7);
  for (int i = 0; i < 20000; ++i) {
    const auto half = [&] {
      return static_cast<_Float16>(random.normal() * std::ldexp(1.0, static_cast<int>(random.integer(-24, 12))));
    };
    const _Float16 weight = half(), low = -half() - half(), high = low + half() + half();
    if (!(weight > low && weight <= high)) continue;
    const CodeLimits limits{low, high, low, static_cast<_Float16>(high - low)};
    const _Float16 quotient = static_cast<_Float16>(weight - low) / static_cast<_Float16>(high - low);
    const auto want = static_cast<float>(static_cast<_Float16>(quotient * static_cast<_Float16>(255)));
    EXPECT_EQ(quantize_step(weight, limits, {.steps = 255, .low = 0, .in_f16 = true}), std::nearbyint(want));
  }
}

TEST(FakeQuantizeKernel, PacksNibblesInBothOrders) {
  Random random(3);
  for (std::size_t n = 0; n < 140; ++n) {
    std::vector<std::uint8_t> codes(n);
    for (auto& code : codes) code = static_cast<std::uint8_t>(random.bits());
    on_each_target([&] {
      std::vector<std::uint8_t> low((n + 1) / 2), high((n + 1) / 2);
      pack_nibbles(codes, false, low.data());
      pack_nibbles(codes, true, high.data());
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_EQ((low[i / 2] >> (i % 2 ? 4 : 0)) & 15, codes[i] & 15);
        ASSERT_EQ((high[i / 2] >> (i % 2 ? 0 : 4)) & 15, codes[i] & 15);
      }
      if (n % 2 == 1) {
        EXPECT_EQ(low.back() >> 4, 0);
        EXPECT_EQ(high.back() & 15, 0);
      }
    });
  }
}

}  // namespace
}  // namespace weightmill
