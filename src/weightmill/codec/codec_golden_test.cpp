#include <string>

#include <gtest/gtest.h>

#include <testkit/golden.h>

#include "codec.h"

namespace weightmill::mlw {
namespace {

using testkit::GoldenSet;

std::vector<std::uint8_t> bytes_of(std::span<const std::uint8_t> blob) { return {blob.begin(), blob.end()}; }

/// Checks every case of a set that names weights and the stream that `effort` makes of them.
void expect_streams(const std::string& set, const std::string& key, Effort effort) {
  const auto golden = GoldenSet::open(set);
  if (!golden) GTEST_SKIP() << set << " not installed: set WEIGHTMILL_GOLDEN_DIR";
  std::size_t n_checked = 0;
  for (const auto& entry : golden->cases()) {
    if (entry.value("format", "standard") != "standard") continue;
    SCOPED_TRACE(entry.at("name").get<std::string>());
    const auto weights = golden->blob_i16(entry.at("weights"));
    const auto stream = bytes_of(golden->blob(entry.at(key)));
    EXPECT_EQ(encode(weights, effort), stream);
    EXPECT_EQ(decode(stream), weights);
    ++n_checked;
  }
  EXPECT_GT(n_checked, 0u);
}

TEST(CodecGolden, ReferenceVectors) { expect_streams("ethosu/mlw_vectors", "encoded", Effort::reference); }
TEST(CodecGolden, ReferenceEdges) { expect_streams("ethosu/mlw_edges", "reference", Effort::reference); }
TEST(CodecGolden, RegorEdges) { expect_streams("ethosu/mlw_edges", "regor", Effort::regor); }
TEST(CodecGolden, RegorVectors) { expect_streams("ethosu/regor_mlw_vectors", "encoded", Effort::regor); }

TEST(CodecGolden, FastVectors) {
  const auto golden = GoldenSet::open("ethosu/regor_mlw_vectors");
  if (!golden) GTEST_SKIP() << "ethosu/regor_mlw_vectors not installed: set WEIGHTMILL_GOLDEN_DIR";
  for (const auto& entry : golden->cases()) {
    if (entry.value("format", "standard") != "fast") continue;
    SCOPED_TRACE(entry.at("name").get<std::string>());
    const auto weights = golden->blob_i16(entry.at("weights"));
    const auto stream = bytes_of(golden->blob(entry.at("encoded")));
    EXPECT_EQ(encode_fast(weights, entry.value("force_raw", false)), stream);
    EXPECT_EQ(decode_fast(stream, weights.size()), weights);
  }
}

/// The streams of whole layers: what they decode to is checked where the order is known, here that they are sound and
/// that the encoder gives them back.
void expect_reencoded(const std::string& set, const std::string& key, Effort effort) {
  const auto golden = GoldenSet::open(set);
  if (!golden) GTEST_SKIP() << set << " not installed: set WEIGHTMILL_GOLDEN_DIR";
  for (const auto& entry : golden->cases()) {
    if (!entry.contains(key) || entry.at(key).at("bytes") == 0) continue;
    SCOPED_TRACE(entry.at("name").get<std::string>());
    const auto stream = bytes_of(golden->blob(entry.at(key)));
    EXPECT_EQ(encode(decode(stream), effort), stream);
  }
}

TEST(CodecGolden, ReorderedStreams) { expect_reencoded("ethosu/reorder_vectors", "encoded", Effort::reference); }
TEST(CodecGolden, U85Streams) {
  for (const char* key : {"stream0", "stream1", "stream2", "stream3"}) {
    expect_reencoded("ethosu/u85_vectors", key, Effort::regor);
  }
}

}  // namespace
}  // namespace weightmill::mlw
