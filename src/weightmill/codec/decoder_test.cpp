#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weightmill/base/error.h>

#include <testkit/random.h>
#include <testkit/weights.h>

#include "bit_writer.h"
#include "codec.h"
#include "slice.h"

namespace weightmill::mlw {
namespace {

using Weights = std::vector<std::int16_t>;
using Bytes = std::vector<std::uint8_t>;

/// Fields of a slice's header as they are sent.
struct Header {
  unsigned zdiv = kNoRunsCode, n_weights = 1, wdiv = 0, wtrunc = 0, newpal = 1, dirofs = 0, palsize = 0, palbits = 7;
};

/// Builds streams bit by bit, broken ones included.
class StreamBuilder {
 public:
  StreamBuilder& header(const Header& fields) {
    put(fields.zdiv, 3).put(fields.n_weights - 1, 15).put(fields.wdiv, 3).put(fields.wtrunc, 1).put(fields.newpal, 1);
    if (fields.newpal != 0) put(fields.dirofs, 5).put(fields.palsize, 5).put(fields.palbits, 3);
    return *this;
  }
  StreamBuilder& put(std::uint64_t value, unsigned width) {
    out_.put(value, width);
    return *this;
  }
  /// Bits in the order of the stream.
  StreamBuilder& bits(const std::string& text) {
    for (const char c : text) out_.put(c == '1' ? 1 : 0, 1);
    return *this;
  }
  StreamBuilder& end() {
    put_end_of_stream(out_);
    return *this;
  }
  Bytes bytes() { return std::move(out_).take(); }

 private:
  BitWriter out_;
};

std::string refusal_of(const Bytes& stream, std::size_t max_weights = kDefaultMaxWeights) {
  try {
    decode(stream, max_weights);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::bad_stream);
    return error.what();
  }
  return "accepted";
}

using testing::HasSubstr;

/// One plain slice of divisor 0 and index 4: q = 4 is 1/1, 1/1, 0.
StreamBuilder simple() { return std::move(StreamBuilder().header({}).bits("110000000000" "11")); }

TEST(Decoder, ReadsASimpleStream) { EXPECT_EQ(decode(simple().end().bytes()), Weights{2}); }

TEST(Decoder, RefusesEveryTruncation) {
  for (const std::uint64_t seed : testkit::seeds(40)) {
    for (const Effort effort : {Effort::reference, Effort::regor}) {
      Bytes stream = encode(testkit::random_weights(seed, 300), effort);
      while (!stream.empty() && stream.back() == 0xff) stream.pop_back();
      while (!stream.empty()) {
        stream.pop_back();
        EXPECT_THAT(refusal_of(stream), HasSubstr("ends"));
      }
    }
  }
}

TEST(Decoder, RefusesNoBytesAtAll) { EXPECT_THAT(refusal_of({}), HasSubstr("ends without an end code")); }

TEST(Decoder, RefusesAStreamWithoutEnd) {
  EXPECT_THAT(refusal_of(simple().bytes()), HasSubstr("ends without an end code"));
}

TEST(Decoder, RefusesDivisorCodesThatDoNotExist) {
  EXPECT_THAT(refusal_of(StreamBuilder().header({.zdiv = 4}).end().bytes()), HasSubstr("run divisor code 4"));
  EXPECT_THAT(refusal_of(StreamBuilder().header({.zdiv = 5}).end().bytes()), HasSubstr("run divisor code 5"));
  EXPECT_THAT(refusal_of(StreamBuilder().header({.wdiv = 6}).end().bytes()), HasSubstr("weight divisor code 6"));
}

TEST(Decoder, RefusesAFirstSliceWithoutPalette) {
  EXPECT_THAT(refusal_of(StreamBuilder().header({.newpal = 0}).end().bytes()), HasSubstr("no palette"));
  Bytes twice = simple().end().bytes();
  const Bytes second = StreamBuilder().header({.newpal = 0}).bits("000000000000").end().bytes();
  twice.insert(twice.end(), second.begin(), second.end());
  EXPECT_THAT(refusal_of(twice), HasSubstr("no palette"));
}

TEST(Decoder, RefusesZeroRunsThatComeOrGoWithoutAPalette) {
  EXPECT_THAT(refusal_of(simple().header({.zdiv = 0, .newpal = 0}).end().bytes()), HasSubstr("zero-run mode changes"));
  StreamBuilder with_runs;
  with_runs.header({.zdiv = 0}).bits("000000000000" "000000000000").header({.newpal = 0});
  EXPECT_THAT(refusal_of(with_runs.end().bytes()), HasSubstr("zero-run mode changes"));
}

TEST(Decoder, RefusesAnIndexBeyond511) {
  // Divisor 5, q = 16: eight times 1/1, then 0.
  EXPECT_THAT(refusal_of(StreamBuilder().header({.wdiv = 5}).bits("111111110000" "11111111" "00000").end().bytes()),
              HasSubstr("index is beyond 511"));
  // Divisor 5, q = 15, remainder 31, is 511: the largest.
  StreamBuilder largest;
  largest.header({.wdiv = 5}).bits("111111110000" "11111110" "11111").end();
  EXPECT_EQ(decode(largest.bytes()), Weights{-255});
}

TEST(Decoder, RefusesAQuotientWithoutEnd) {
  StreamBuilder stream;
  stream.header({.wdiv = 0});
  for (int i = 0; i < 1000; ++i) stream.bits("111111111111" "111111111111");
  EXPECT_THAT(refusal_of(stream.end().bytes()), HasSubstr("index is beyond 511"));
}

TEST(Decoder, ReadsTheLargestQuotient) {
  StreamBuilder stream;  // 511 = 255 times 1/1, then 1/0: 21 chunks of 12 positions, and 4 positions more
  stream.header({.wdiv = 0});
  for (int i = 0; i < 21; ++i) stream.bits("111111111111" "111111111111");
  EXPECT_EQ(decode(stream.bits("111100000000" "1110").end().bytes()), Weights{-255});
}

TEST(Decoder, RefusesADirectIndexThatStandsForNoWeight) {
  // D = 31, index 481 -> code value 512; uncompressed with B = 9.
  EXPECT_THAT(refusal_of(StreamBuilder().header({.wdiv = 7, .dirofs = 31}).put(481, 9).end().bytes()),
              HasSubstr("weight beyond 255"));
  EXPECT_EQ(decode(StreamBuilder().header({.wdiv = 7, .dirofs = 31}).put(480, 9).end().bytes()), Weights{-255});
}

TEST(Decoder, ReadsUncompressedIndicesBehindThePalette) {
  // Three entries take two bits; index 3 is code value 3 - 3 + 4.
  StreamBuilder stream;
  stream.header({.n_weights = 2, .wdiv = 7, .wtrunc = 1, .dirofs = 4, .palsize = 2, .palbits = 2});
  stream.put(8, 4).put(9, 4).put(1, 4).put(3, 2).put(2, 2);
  EXPECT_EQ(decode(stream.end().bytes()), (Weights{2, 0}));  // entry 2 is code value 1: minus zero
}

TEST(Decoder, ReadsStreamsBehindOneAnother) {
  const Weights first = testkit::random_weights(1, 500), second = testkit::random_weights(2, 500);
  Bytes both = encode(first, Effort::reference);
  both.insert(both.end(), 48, 0xff);
  const Bytes more = encode(second, Effort::regor);
  both.insert(both.end(), more.begin(), more.end());
  Weights expected = first;
  expected.insert(expected.end(), second.begin(), second.end());
  const Decoded decoded = decode_with_statistics(both);
  EXPECT_EQ(decoded.weights, expected);
  EXPECT_EQ(decoded.statistics.streams, 2u);
}

TEST(Decoder, IgnoresSkippedBitsAndFiller) {
  EXPECT_EQ(decode(simple().bits("111" "000").bytes()), Weights{2});
  EXPECT_EQ(decode(StreamBuilder().header({}).bits("110111111111" "11" "111111111").end().bytes()), Weights{2});
  EXPECT_EQ(decode(Bytes(16, 0xff)), Weights{});
}

TEST(Decoder, ReadsTheLongestSlice) {
  StreamBuilder stream;
  stream.header({.n_weights = 32768, .wdiv = 7, .palbits = 0});
  for (int i = 0; i < 32768; ++i) stream.put(2, 2);
  const Weights weights = decode(stream.end().bytes());
  EXPECT_EQ(weights, Weights(32768, 1));
}

TEST(Decoder, RefusesMoreWeightsThanWanted) {
  const Bytes stream = encode(Weights(5000, 0), Effort::reference);
  EXPECT_EQ(decode(stream, 5000).size(), 5000u);
  EXPECT_THAT(refusal_of(stream, 4999), HasSubstr("more than 4999 weights"));
  EXPECT_THAT(refusal_of(encode(Weights(100, 7), Effort::reference), 99), HasSubstr("more than 99 weights"));
}

TEST(Decoder, RefusesARunWithoutEndAsSoonAsItIsTooLong) {
  StreamBuilder stream;
  stream.header({.zdiv = 3}).bits("000000000000");
  for (int i = 0; i < 1000; ++i) stream.bits("11111111");  // 64 zeros each
  const Bytes bytes = stream.bytes();
  EXPECT_THAT(refusal_of(bytes, 6400), HasSubstr("bit 856: a zero run has more than 6400 weights"));
  EXPECT_THAT(refusal_of(bytes), HasSubstr("ends"));
}

TEST(Decoder, NamesTheBit) { EXPECT_THAT(refusal_of(simple().header({.wdiv = 6}).end().bytes()), HasSubstr("bit 73")); }

TEST(Decoder, CountsWhatItMeets) {
  StreamBuilder stream;
  stream.header({.palsize = 1, .palbits = 0}).put(2, 2).put(3, 2).bits("000000000000");
  stream.header({.newpal = 0}).bits("000000000000").end();
  const auto statistics = decode_with_statistics(stream.bytes()).statistics;
  EXPECT_EQ(statistics.weights, 2u);
  EXPECT_EQ(statistics.coded_indices, 2u);
  EXPECT_EQ(statistics.slices, 2u);
  EXPECT_EQ(statistics.palettes, 1u);
  EXPECT_EQ(statistics.palette_entries, 2u);
  EXPECT_EQ(statistics.passes, 4u);
  EXPECT_EQ(statistics.header_bits, 36u + 4 + 23);
  EXPECT_EQ(statistics.end_bits, 128u - (36 + 4 + 12 + 23 + 12));
  EXPECT_EQ(statistics.slices_of_weight_code[0], 2u);
  EXPECT_EQ(statistics.slices_of_run_code[4], 2u);
}

/// Any bytes are either decoded, to at most 64 weights each, or refused.
TEST(Decoder, SurvivesNoise) {
  for (const std::uint64_t seed : testkit::seeds(3000)) {
    testkit::Random random(seed);
    Bytes stream = encode(testkit::random_weights(seed, 200), seed % 2 == 0 ? Effort::reference : Effort::regor);
    for (std::int64_t n = random.integer(1, 4); n > 0; --n) {
      const auto at = static_cast<std::size_t>(random.integer(0, std::ssize(stream) - 1));
      stream[at] = static_cast<std::uint8_t>(stream[at] ^ 1u << random.integer(0, 7));
    }
    try {
      EXPECT_LE(decode(stream).size(), 64 * stream.size());
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::bad_stream);
    }
  }
}

}  // namespace
}  // namespace weightmill::mlw
