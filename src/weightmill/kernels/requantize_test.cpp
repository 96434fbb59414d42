#include "requantize.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "on_each_target.h"
#include "testkit/random.h"

namespace weightmill {
namespace {

using testkit::Random;

std::vector<Rounding> all_rules() {
  std::vector<Rounding> rules;
  for (std::size_t i = 0; i < rounding_names().size(); ++i) rules.push_back(static_cast<Rounding>(i));
  return rules;
}

/// One request with parameters inside the limits of `rule`.
struct Request {
  std::vector<std::int64_t> multiplier;
  std::vector<std::int32_t> shift;
  std::vector<float> gain, offset;
  std::vector<double> wide_gain;
  FloatStep last;
  OutputCodes output;

  RequantLanes lanes() const { return {multiplier, shift, gain, wide_gain, offset, last}; }
};

Request random_request(Rounding rule, std::size_t n_channels, Random& random) {
  Request request;
  const bool small = rule == Rounding::folded || rule == Rounding::after_shift;
  for (std::size_t c = 0; c < n_channels; ++c) {
    request.multiplier.push_back(small ? random.integer(1, 127) : random.integer(1LL << 30, (1LL << 31) - 1));
    request.shift.push_back(static_cast<std::int32_t>(small ? random.integer(0, 31) : random.integer(25, 62)));
    request.wide_gain.push_back(std::ldexp(random.unit(), static_cast<int>(random.integer(-20, 2))));
    request.gain.push_back(static_cast<float>(request.wide_gain.back()));
    request.offset.push_back(static_cast<float>(random.normal() * 100));
  }
  request.last = {static_cast<float>(random.unit()), static_cast<float>(random.unit() * 255)};
  request.output.zero_point = static_cast<std::int32_t>(random.integer(-128, 127));
  if (random.chance(0.5)) request.output.low = request.output.zero_point;
  return request;
}

template <class Acc>
std::vector<Acc> random_accumulators(std::size_t count, Random& random) {
  std::vector<Acc> acc(count);
  for (Acc& a : acc) {
    const auto bits = random.integer(1, sizeof(Acc) == 4 ? 31 : 40);
    a = static_cast<Acc>(random.integer(-(1LL << bits), (1LL << bits) - 1));
  }
  return acc;
}

template <class Acc>
void expect_targets_agree(Rounding rule, std::uint64_t seed) {
  Random random(seed);
  const auto n_channels = static_cast<std::size_t>(random.integer(1, 40));
  const Request request = random_request(rule, n_channels, random);
  const auto acc = random_accumulators<Acc>(n_channels * 7, random);
  std::vector<std::int32_t> want(acc.size());
  const auto want_counts = requantize_scalar(rule, request.lanes(), request.output, std::span<const Acc>(acc), want);
  on_each_target([&] {
    std::vector<std::int32_t> codes(acc.size());
    const auto counts = requantize(rule, request.lanes(), request.output, std::span<const Acc>(acc), codes);
    EXPECT_EQ(codes, want) << name_of(rule);
    EXPECT_EQ(counts, want_counts) << name_of(rule);
  });
}

TEST(Requantize, AllTargetsAgreeBitForBit) {
  for (const Rounding rule : all_rules()) {
    for (const std::uint64_t seed : testkit::seeds(40)) {
      SCOPED_TRACE(seed);
      expect_targets_agree<std::int32_t>(rule, seed);
      expect_targets_agree<std::int64_t>(rule, seed);
    }
  }
}

TEST(Requantize, CountsWhatTheOutputTypeCannotHold) {
  const std::vector<std::int64_t> multiplier{std::int64_t{1} << 30};
  const std::vector<std::int32_t> shift{30};
  const OutputCodes relu{.zero_point = 10, .low = 10};
  const std::vector<std::int32_t> acc{-139, -138, 0, 117, 118};
  std::vector<std::int32_t> codes(acc.size());
  const auto counts =
      requantize(Rounding::half_away, {multiplier, shift, {}, {}}, relu, std::span<const std::int32_t>(acc), codes);
  EXPECT_EQ(codes, (std::vector<std::int32_t>{10, 10, 10, 127, 127}));
  EXPECT_EQ(counts.saturated, 2u) << "-129 and 128; the codes that only the activation cuts do not count";
}

TEST(Requantize, SaturatesOrWrapsWideAccumulatorsByRule) {
  const std::vector<std::int64_t> multiplier{std::int64_t{1} << 30};
  const std::vector<std::int32_t> shift{30};
  const std::vector<std::int64_t> acc{(std::int64_t{1} << 32) + 5};
  std::vector<std::int32_t> codes(1);
  const std::span<const std::int64_t> view(acc);
  EXPECT_EQ(requantize(Rounding::folded, {{}, shift, {}, {}}, {}, view, codes).wide, 1u);
  EXPECT_EQ(codes[0], 2) << "2^31 - 1 over 2^30";
  EXPECT_EQ(requantize(Rounding::gemmlowp_double, {multiplier, shift, {}, {}}, {}, view, codes).wide, 1u);
  EXPECT_EQ(codes[0], 5);
  EXPECT_EQ(requantize(Rounding::half_even, {multiplier, shift, {}, {}}, {}, view, codes).wide, 1u);
  EXPECT_EQ(codes[0], 127);
}

TEST(Requantize, EightsFollowOneRuleAndTheRestAnother) {
  const std::vector<std::int64_t> multiplier(11, std::int64_t{1} << 30);
  const std::vector<std::int32_t> shift(11, 32);
  const std::vector<std::int32_t> acc(22, -2);  // a gain of 1/4: -1/2 is a tie
  std::vector<std::int32_t> codes(22);
  requantize(Rounding::double_by_eights, {multiplier, shift, {}, {}}, {}, std::span<const std::int32_t>(acc), codes);
  for (std::size_t i = 0; i < codes.size(); ++i) EXPECT_EQ(codes[i], i % 11 < 8 ? 0 : -1) << i;
}

TEST(Requantize, KeepsWhatEnginesKeepOfLargeResults) {
  const std::vector<std::int64_t> multiplier{std::int64_t{1} << 30};
  const std::vector<std::int32_t> shift{30};
  const std::vector<double> gain{1};
  const std::vector<std::int64_t> acc{(std::int64_t{1} << 32) - 3};
  const std::span<const std::int64_t> view(acc);
  std::vector<std::int32_t> codes(1);
  EXPECT_EQ(requantize(Rounding::int16x8, {multiplier, shift, {}, {}}, {}, view, codes).saturated, 1u);
  EXPECT_EQ(codes[0], -3) << "the low 32 bits";
  EXPECT_EQ(requantize(Rounding::double_gain, {{}, {}, {}, gain}, {}, view, codes).saturated, 1u);
  EXPECT_EQ(codes[0], -128) << "the least int32";
  requantize(Rounding::double_gain, {{}, {}, {}, gain}, {.zero_point = -1}, view, codes);
  EXPECT_EQ(codes[0], 127) << "one below the least int32";
}

TEST(Requantize, OpenvinosSecondStepIsFused) {
  const std::vector<float> gain{1}, offset{0};
  const RequantLanes lanes{{}, {}, gain, {}, offset, {1 + 0x1p-23F, -(4096.5F + 0x1p-11F)}};
  const std::vector<std::int32_t> acc{4097, 0, 9000};
  std::vector<std::int32_t> codes(acc.size());
  const auto counts = requantize(Rounding::openvino, lanes, {0, 0, 255, 0, 255}, std::span<const std::int32_t>(acc),
                                 codes);
  EXPECT_EQ(codes, (std::vector<std::int32_t>{1, 0, 255})) << "0.5 + 2^-23; a product rounded by itself makes it a tie";
  EXPECT_EQ(counts.saturated, 2u);
}

TEST(Requantize, NamesAreFoundBack) {
  for (const Rounding rule : all_rules()) EXPECT_EQ(rounding_named(name_of(rule)), rule);
  EXPECT_EQ(rounding_named("half_down"), std::nullopt);
}

}  // namespace
}  // namespace weightmill
