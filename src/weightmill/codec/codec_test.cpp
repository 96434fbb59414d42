#include "codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weightmill/base/error.h>

#include <testkit/weights.h>

namespace weightmill::mlw {
namespace {

using Weights = std::vector<std::int16_t>;

constexpr Effort kEfforts[] = {Effort::reference, Effort::regor, Effort::fast, Effort::best};

TEST(Codec, RoundTripsAnyWeights) {
  for (const Effort effort : kEfforts) {
    for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
      SCOPED_TRACE(seed);
      const auto weights = testkit::random_weights(seed);
      const auto stream = encode(weights, effort);
      EXPECT_EQ(stream.size() % 16, 0u);
      EXPECT_EQ(decode(stream), weights);
    }
  }
}

TEST(Codec, RoundTripsSectionsOfManySlices) {
  for (const Effort effort : kEfforts) {
    for (const double density : {1.0, 0.3, 0.01}) {
      const auto weights = testkit::normal_weights(9, 150000, 20, density);
      EXPECT_EQ(decode(encode(weights, effort)), weights);
    }
    EXPECT_EQ(decode(encode(Weights(300000, 0), effort)), Weights(300000, 0));
  }
}

TEST(Codec, GivesNoBytesForNoWeights) {
  for (const Effort effort : kEfforts) EXPECT_TRUE(encode({}, effort).empty());
}

TEST(Codec, RefusesAWeightOutOfRangeAndNamesIt) {
  for (const Effort effort : kEfforts) {
    for (const std::int16_t weight : Weights{256, -256, 32767, -32768}) {
      try {
        encode(Weights{0, 255, -255, weight, 300}, effort);
        ADD_FAILURE() << "accepted " << weight;
      } catch (const Error& error) {
        EXPECT_EQ(error.code, ErrorCode::bad_request);
        EXPECT_THAT(error.what(), testing::HasSubstr("weight 3: is " + std::to_string(weight)));
      }
    }
  }
}

TEST(Codec, RefusesMoreWeightsThanAStreamMayHold) {
  const std::int16_t weight = 0;  // refused by the number alone: no more than that is looked at
  EXPECT_THROW(encode(std::span(&weight, kDefaultMaxWeights + 1), Effort::reference), Error);
}

}  // namespace
}  // namespace weightmill::mlw
