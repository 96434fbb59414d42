#include "channel_rows.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "on_each_target.h"
#include "testkit/random.h"

namespace weightmill {
namespace {

struct Sample {
  std::size_t n_channels;
  std::vector<float> weight;
  std::vector<double> step;
};

/// Weights of every size of channel count, many of them exact ties at the given steps.
Sample random_sample(std::uint64_t seed) {
  testkit::Random random(seed);
  Sample s;
  s.n_channels = static_cast<std::size_t>(random.chance(0.1) ? random.integer(1000, 2100) : random.integer(1, 200));
  const auto n_rows = static_cast<std::size_t>(random.chance(0.1) ? random.integer(250, 600) : random.integer(1, 40));
  for (std::size_t c = 0; c < s.n_channels; ++c) {
    s.step.push_back(std::ldexp(1 + random.unit(), static_cast<int>(random.integer(-3, 6))));
  }
  for (std::size_t i = 0; i < n_rows * s.n_channels; ++i) {
    const double step = s.step[i % s.n_channels];
    const bool tie = random.chance(0.3);
    const double code = tie ? static_cast<double>(random.integer(-127, 126)) + 0.5 : 127 * (2 * random.unit() - 1);
    s.weight.push_back(static_cast<float>(code / step));
  }
  return s;
}

TEST(ChannelRows, AllTargetsGiveTheBitsOfTheScalarTwin) {
  for (const std::uint64_t seed : testkit::seeds(60)) {
    SCOPED_TRACE(seed);
    const Sample s = random_sample(seed);
    std::vector<std::uint32_t> peak(s.n_channels), want_peak(s.n_channels);
    std::vector<std::int8_t> q(s.weight.size()), want_q(s.weight.size());
    std::vector<std::int64_t> sum(s.n_channels), want_sum(s.n_channels);
    on_each_target([&] {
      channel_peak_bits(s.weight, peak);
      scalar::channel_peak_bits(s.weight, want_peak);
      EXPECT_EQ(peak, want_peak);
      quantize_rows(s.weight, s.step, q, sum);
      scalar::quantize_rows(s.weight, s.step, want_q, want_sum);
      EXPECT_EQ(q, want_q);
      EXPECT_EQ(sum, want_sum);
      channel_abs_sums(q, sum);
      scalar::channel_abs_sums(q, want_sum);
      EXPECT_EQ(sum, want_sum);
    });
  }
}

TEST(ChannelRows, DivisionIsTrueOnAllTargets) {
  for (const std::uint64_t seed : testkit::seeds(60)) {
    SCOPED_TRACE(seed);
    Sample s = random_sample(seed);
    for (double& step : s.step) step = 1 / step;
    std::vector<std::int8_t> q(s.weight.size()), want_q(s.weight.size());
    std::vector<std::int64_t> sum(s.n_channels), want_sum(s.n_channels);
    on_each_target([&] {
      quantize_rows_by_unit(s.weight, s.step, q, sum);
      scalar::quantize_rows_by_unit(s.weight, s.step, want_q, want_sum);
      EXPECT_EQ(q, want_q);
      EXPECT_EQ(sum, want_sum);
    });
  }
}

TEST(ChannelRows, PeakShowsWhatIsNotFinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> weight{1.0F, -kInf, -0.0F, -2.0F, 3.0F, -std::numeric_limits<float>::quiet_NaN()};
  std::vector<std::uint32_t> peak(3);
  channel_peak_bits(weight, peak);
  EXPECT_EQ(std::bit_cast<float>(peak[0]), 2.0F);
  EXPECT_EQ(std::bit_cast<float>(peak[1]), kInf);
  EXPECT_GT(peak[2], 0x7f800000u);
}

TEST(ChannelRows, RoundsHalfToEvenAndSaturates) {
  const std::vector<float> weight{0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 126.5F, 200.0F, -300.0F};
  const std::vector<double> one{1.0};
  std::vector<std::int8_t> q(weight.size());
  std::vector<std::int64_t> sum(1);
  quantize_rows(weight, one, q, sum);
  EXPECT_EQ(q, (std::vector<std::int8_t>{0, 2, 2, 0, -2, 126, 127, -128}));
  EXPECT_EQ(sum[0], 127);
}

}  // namespace
}  // namespace weightmill
