#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <testkit/random.h>
#include <testkit/weights.h>

#include "codec.h"
#include "encoders.h"
#include "sections.h"

namespace weightmill::mlw {
namespace {

using Weights = std::vector<std::int16_t>;

#ifdef __SANITIZE_ADDRESS__
constexpr std::uint64_t kStreams = 250;  // of each test below; the others have the time for all
#else
constexpr std::uint64_t kStreams = 5000;
#endif

struct Found {
  Cost cost;
  StreamStatistics statistics;
};

/// Encodes, and decodes again with the same result.
Found encoded(const Weights& weights, Effort effort, Forms forms) {
  const auto stream = encode(weights, effort, forms);
  const Decoded decoded = decode_with_statistics(stream);
  EXPECT_EQ(decoded.weights, weights);
  EXPECT_EQ(stream.size() % 16, 0u);
  return {{stream.size() * 8, decoded.statistics.passes}, decoded.statistics};
}

/// No larger and no slower to decode than the smaller of Vela's streams.
void expect_within_limits(const Cost& found, const Weights& weights) {
  const Cost reference = reference_cost(weights, reference_section_starts(weights)), regor = regor_cost(weights);
  const auto key = [](const Cost& cost) { return std::pair(cost.bits, cost.passes); };
  const Cost& smaller = key(regor) < key(reference) ? regor : reference;
  EXPECT_LE(found.bits, smaller.bits);
  EXPECT_LE(found.passes, smaller.passes);
}

/// Values that come and go: each stretch has its own few, so that a palette helps there and nowhere else.
Weights changing_palettes(std::uint64_t seed) {
  testkit::Random random(seed);
  Weights weights;
  const auto n_stretches = random.integer(1, 6);
  for (std::int64_t k = 0; k < n_stretches; ++k) {
    Weights values(static_cast<std::size_t>(random.integer(1, 40)));
    for (auto& value : values) value = static_cast<std::int16_t>(random.integer(-255, 255));
    const double others = random.chance(0.5) ? 0.05 : 0;
    for (auto n = random.integer(1, 1200); n > 0; --n) {
      const auto any = static_cast<std::int16_t>(random.integer(-255, 255));
      const auto one = values[static_cast<std::size_t>(random.integer(0, std::ssize(values) - 1))];
      weights.push_back(random.chance(others) ? any : one);
    }
  }
  return weights;
}

/// Channels of a depthwise layer: each with its own spread, and zeros up to the next multiple behind it.
Weights padded_channels(std::uint64_t seed) {
  testkit::Random random(seed);
  Weights weights;
  const auto size = static_cast<std::size_t>(random.integer(4, 80));
  const auto padding = static_cast<std::size_t>(random.integer(0, 60));
  for (auto n = random.integer(1, 40); n > 0; --n) {
    const auto channel = testkit::normal_weights(static_cast<std::uint64_t>(random.integer(1, 1 << 30)), size,
                                                 static_cast<double>(random.integer(1, 80)));
    weights.insert(weights.end(), channel.begin(), channel.end());
    weights.insert(weights.end(), padding, 0);
  }
  return weights;
}

class Streams : public testing::TestWithParam<int> {
 protected:
  /// Of one of three kinds by turns.
  Weights draw(std::uint64_t seed) const {
    if (seed % 4 == 0) return changing_palettes(seed);
    return seed % 4 == 1 ? padded_channels(seed) : testkit::random_weights(seed, 2000);
  }
  std::uint64_t first_seed() const { return static_cast<std::uint64_t>(GetParam()) * 1'000'000; }
};

TEST_P(Streams, OfBestDecodeToTheirWeightsAndKeepTheLimits) {
  for (std::uint64_t i = 0; i < kStreams; ++i) {
    SCOPED_TRACE(first_seed() + i);
    const Weights weights = draw(first_seed() + i);
    const Forms forms = i % 3 == 0 ? Forms::all : Forms::proven;
    const Found found = encoded(weights, Effort::best, forms);
    expect_within_limits(found.cost, weights);
    if (forms == Forms::proven) {
      EXPECT_EQ(found.statistics.unproven_palettes, 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EncoderBest, Streams, testing::Range(0, 10));

TEST(EncoderBest, FastDecodesToItsWeightsAndKeepsTheLimitsOfShortStreams) {
  for (std::uint64_t seed = 1; seed <= kStreams; ++seed) {
    SCOPED_TRACE(seed);
    const Weights weights = testkit::random_weights(seed, 2000);
    const Found found = encoded(weights, Effort::fast, seed % 3 == 0 ? Forms::all : Forms::proven);
    if (weights.size() <= 1024) expect_within_limits(found.cost, weights);
  }
}

TEST(EncoderBest, MaxIsNeverLargerThanBest) {
  for (std::uint64_t seed = 1; seed <= kStreams / 10; ++seed) {
    SCOPED_TRACE(seed);
    const Weights weights = seed % 2 == 0 ? changing_palettes(seed) : testkit::random_weights(seed, 4000);
    const Forms forms = seed % 3 == 0 ? Forms::all : Forms::proven;
    const Found max = encoded(weights, Effort::max, forms);
    EXPECT_LE(max.cost.bits, encoded(weights, Effort::best, forms).cost.bits);
    expect_within_limits(max.cost, weights);
  }
}

TEST(EncoderBest, SavesWhatItIsForOnRealShapesOfWeights) {
  const Weights bell = testkit::normal_weights(3, 200000, 22);
  const auto reference = encode(bell, Effort::reference).size();
  EXPECT_LT(encode(bell, Effort::best).size() * 100, reference * 98);
  EXPECT_LE(encode(bell, Effort::best, Forms::all).size(), encode(bell, Effort::best).size());
  Weights padded;
  for (std::uint64_t channel = 1; channel <= 300; ++channel) {
    const auto more = testkit::normal_weights(channel, 72, 30);
    padded.insert(padded.end(), more.begin(), more.end());
    padded.insert(padded.end(), 56, 0);
  }
  EXPECT_LT(encode(padded, Effort::best).size() * 100, encode(padded, Effort::reference).size() * 98);
}

TEST(EncoderBest, FastFollowsPalettesThatChange) {
  Weights weights;
  testkit::Random random(17);
  for (int stretch = 0; stretch < 100; ++stretch) {
    Weights values(8);
    for (auto& value : values) value = static_cast<std::int16_t>(random.integer(-100, 100));
    for (int i = 0; i < 800; ++i) weights.push_back(values[static_cast<std::size_t>(random.integer(0, 7))]);
  }
  EXPECT_LE(encode(weights, Effort::fast).size() * 100, encode(weights, Effort::reference).size() * 105);
}

TEST(EncoderBest, LongStreamsCrossTheSearchsWindows) {
  for (const double density : {1.0, 0.4, 0.02}) {
    const Weights weights = testkit::normal_weights(5, 700'000, 20, density);
    expect_within_limits(encoded(weights, Effort::best, Forms::proven).cost, weights);
    encoded(weights, Effort::fast, Forms::proven);
  }
  expect_within_limits(encoded(Weights(700'000, 0), Effort::best, Forms::proven).cost, Weights(700'000, 0));
  expect_within_limits(encoded(Weights(700'000, -255), Effort::best, Forms::all).cost, Weights(700'000, -255));
}

TEST(EncoderBest, TakesEveryShortStream) {
  for (std::int16_t weight = -255; weight <= 255; ++weight) {
    for (const std::size_t n : {1, 2, 15, 16, 17, 40}) {
      for (const Forms forms : {Forms::proven, Forms::all}) {
        const Weights weights(n, weight);
        expect_within_limits(encoded(weights, Effort::best, forms).cost, weights);
        encoded(weights, Effort::fast, forms);
      }
    }
  }
}

TEST(EncoderBest, EveryPairOfValuesSurvives) {
  for (std::int16_t first = -255; first <= 255; first += 3) {
    for (std::int16_t second = -255; second <= 255; second += 5) {
      const Weights weights{first, second, 0, first, second, second};
      for (const Forms forms : {Forms::proven, Forms::all}) encoded(weights, Effort::best, forms);
    }
  }
}

TEST(EncoderBest, ReferenceCostsAreThoseOfTheStreams) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    const Weights weights = testkit::random_weights(seed);
    const auto starts = reference_section_starts(weights);
    const VelaCosts both = vela_costs(weights, starts);
    for (const Effort effort : {Effort::reference, Effort::regor}) {
      const Cost cost = effort == Effort::regor ? regor_cost(weights) : reference_cost(weights, starts);
      const Cost shared = effort == Effort::regor ? both.regor : both.reference;
      EXPECT_EQ(shared.bits, cost.bits);
      EXPECT_EQ(shared.passes, cost.passes);
      const auto stream = encode(weights, effort);
      EXPECT_EQ(cost.bits, stream.size() * 8);
      EXPECT_EQ(cost.passes, decode_with_statistics(stream).statistics.passes);
    }
  }
}

}  // namespace
}  // namespace weightmill::mlw
