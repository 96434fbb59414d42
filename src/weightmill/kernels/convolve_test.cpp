#include "convolve.h"

#include <gtest/gtest.h>

#include "on_each_target.h"
#include "testkit/random.h"

namespace weightmill {
namespace {

using testkit::Random;

std::vector<std::int16_t> random_codes(std::size_t count, std::int64_t limit, Random& random) {
  std::vector<std::int16_t> codes(count);
  for (std::int16_t& code : codes) code = static_cast<std::int16_t>(random.integer(-limit, limit - 1));
  return codes;
}

/// A random row of pixels over a random image, with `length` elements a run.
struct Case {
  std::vector<std::size_t> offset;
  TapRuns taps;
  std::vector<std::int16_t> input;
  std::size_t n_channels;

  Case(std::size_t length, std::uint64_t seed) {
    Random random(seed);
    taps.n_pixels = static_cast<std::size_t>(random.integer(1, 21));
    taps.pixel_step = static_cast<std::size_t>(random.integer(1, 40));
    taps.length = length;
    for (std::int64_t r = random.integer(1, 9); r > 0; --r)
      offset.push_back(static_cast<std::size_t>(random.integer(0, 300)));
    taps.offset = offset;
    input = random_codes(taps.n_pixels * taps.pixel_step + 300 + length, random.chance(0.5) ? 256 : 32768, random);
    n_channels = static_cast<std::size_t>(random.integer(1, 70));
  }
};

TEST(Convolve, PanelsOnAllTargetsAreTheScalarSum) {
  for (const std::uint64_t seed : testkit::seeds(60)) {
    SCOPED_TRACE(seed);
    Random random(seed + 1000);
    const Case c(2 * static_cast<std::size_t>(random.integer(1, kMaxRunLength / 2)), seed);
    const auto weights = random_codes(c.offset.size() * c.taps.length * c.n_channels, 256, random);
    const auto panels = pack_panels(weights, c.offset.size(), c.taps.length, c.n_channels);
    const std::size_t acc_step = c.n_channels + static_cast<std::size_t>(random.integer(0, 5));
    std::vector<std::int32_t> want(c.taps.n_pixels * acc_step, 7);
    for (std::size_t p = 0; p < c.taps.n_pixels; ++p) {
      for (std::size_t o = 0; o < c.n_channels; ++o) {
        for (std::size_t i = 0; i < c.offset.size() * c.taps.length; ++i) {
          const std::size_t x = p * c.taps.pixel_step + c.offset[i / c.taps.length] + i % c.taps.length;
          std::int32_t& sum = want[p * acc_step + o];
          sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) +
                                          static_cast<std::uint32_t>(c.input[x] * weights[i * c.n_channels + o]));
        }
      }
    }
    std::vector<std::int32_t> scalar(want.size(), 7);
    accumulate_panels_scalar(c.taps, c.input, panels, c.n_channels, acc_step, scalar);
    ASSERT_EQ(scalar, want);
    on_each_target([&] {
      std::vector<std::int32_t> acc(want.size(), 7);
      accumulate_panels(c.taps, c.input, panels, c.n_channels, acc_step, acc);
      EXPECT_EQ(acc, want);
    });
  }
}

TEST(Convolve, DepthwiseOnAllTargetsIsTheScalarSum) {
  for (const std::uint64_t seed : testkit::seeds(60)) {
    SCOPED_TRACE(seed);
    Random random(seed + 2000);
    const Case c(static_cast<std::size_t>(random.integer(1, 150)), seed);
    const auto weights = random_codes(c.offset.size() * c.taps.length, 256, random);
    std::vector<std::int32_t> want(c.taps.n_pixels * c.taps.length, -5);
    accumulate_depthwise_scalar(c.taps, c.input, weights, want);
    on_each_target([&] {
      std::vector<std::int32_t> acc(want.size(), -5);
      accumulate_depthwise(c.taps, c.input, weights, acc);
      EXPECT_EQ(acc, want);
    });
  }
}

}  // namespace
}  // namespace weightmill
