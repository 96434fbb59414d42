#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weightmill/base/error.h>

#include <testkit/random.h>
#include <testkit/weights.h>

#include "codec.h"

namespace weightmill::mlw {
namespace {

using Weights = std::vector<std::int16_t>;
using Bytes = std::vector<std::uint8_t>;

Weights ramp(int first, int n) {
  Weights weights;
  for (int i = 0; i < n; ++i) weights.push_back(static_cast<std::int16_t>(first + i));
  return weights;
}

TEST(FastFormat, RoundTripsWhatFits) {
  int n_fitting = 0;
  for (const std::uint64_t seed : testkit::seeds(1000)) {
    SCOPED_TRACE(seed);
    const auto weights = testkit::random_weights(seed);
    for (const bool force_raw : {false, true}) {
      const auto stream = encode_fast(weights, force_raw);
      if (!stream) continue;
      ++n_fitting;
      EXPECT_EQ(stream->size() % 32, 0u);
      EXPECT_EQ(decode_fast(*stream, weights.size()), weights);
    }
  }
  EXPECT_GT(n_fitting, 500);
}

TEST(FastFormat, TakesTwoFourOrEightBits) {
  EXPECT_EQ(encode_fast(ramp(0, 4))->front() & 3, 2);
  EXPECT_EQ(encode_fast(ramp(0, 5))->front() & 3, 0);
  EXPECT_EQ(encode_fast(ramp(0, 16))->front() & 3, 0);
  EXPECT_EQ(encode_fast(ramp(0, 17))->front() & 3, 1);
  EXPECT_EQ(encode_fast(ramp(0, 4), true)->front() & 3, 1);
  EXPECT_EQ(encode_fast(Weights(256, 5))->size(), 32u + 64);
}

TEST(FastFormat, MovesWideRangesIntoEightBits) {
  EXPECT_EQ(decode_fast(*encode_fast(ramp(-255, 256)), 256), ramp(-255, 256));
  EXPECT_EQ(decode_fast(*encode_fast(ramp(0, 256)), 256), ramp(0, 256));
  EXPECT_FALSE(encode_fast(ramp(-1, 257)));
  EXPECT_FALSE(encode_fast(ramp(0, 200), true));
  EXPECT_TRUE(encode_fast(ramp(-128, 256), true));
}

TEST(FastFormat, RefusesAWeightOutOfRange) { EXPECT_THROW(encode_fast(Weights{256}), Error); }

TEST(FastFormat, RefusesAStreamThatIsTooShortOrContradictsItself) {
  const auto refusal = [](const Bytes& stream, std::size_t n_weights) -> std::string {
    try {
      decode_fast(stream, n_weights);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::bad_stream);
      return error.what();
    }
    return "accepted";
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal(Bytes(31), 0), HasSubstr("header alone takes 32"));
  Bytes stream(64);
  EXPECT_EQ(refusal(stream, 64), "accepted");
  EXPECT_THAT(refusal(stream, 65), HasSubstr("hold 64 weights"));
  EXPECT_THAT(refusal(stream, ~std::size_t{0}), HasSubstr("hold 64 weights"));
  stream[0] = 3;
  EXPECT_THAT(refusal(stream, 1), HasSubstr("raw"));
}

}  // namespace
}  // namespace weightmill::mlw
