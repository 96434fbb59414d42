// Real compiled models: what streams.json says of them, identity, squeezing, and streams of other lengths in them.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <testkit/golden.h>
#include <testkit/random.h>
#include <weightmill/base/error.h>
#include <weightmill/codec/codec.h>
#include <weightmill/formats/compiled.h>

#include "analysis.h"
#include "compare.h"
#include "rewrite.h"
#include "squeeze.h"
#include "stream_coding.h"
#include "stream_table.h"
#include "trace.h"

namespace weightmill {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

fs::path folder() { return testkit::models_dir() / "compiled"; }

Bytes read_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

nlohmann::json read_json(const fs::path& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

/// The operators that share a file's first read-only tensor.
NpuPrograms first_programs(const CompiledFile& file) {
  NpuPrograms programs{{}, file.read_only.at(0)};
  for (const auto& op : file.operators) {
    if (op.read_only == 0) programs.programs.push_back({op.name, op.payload});
  }
  return programs;
}

/// A compiled model with the operators that share its first read-only tensor.
struct Compiled {
  explicit Compiled(const std::string& name)
      : bytes(read_bytes(folder() / name)), file(open_compiled(bytes, name)), programs(first_programs(file)) {}

  /// The file with those operators' payloads and their tensor replaced.
  Bytes with(const std::vector<Bytes>& payloads, const Bytes& read_only) const {
    std::vector<Bytes> all_payloads, all_read_only;
    std::size_t next = 0;
    for (const auto& op : file.operators) {
      all_payloads.push_back(op.read_only == 0 ? payloads.at(next++) : Bytes(op.payload.begin(), op.payload.end()));
    }
    for (const auto& tensor : file.read_only) all_read_only.emplace_back(tensor.begin(), tensor.end());
    all_read_only.at(0) = read_only;
    return replace_compiled(bytes, "compiled model", all_payloads, all_read_only);
  }

  Bytes bytes;
  CompiledFile file;
  NpuPrograms programs;
};

/// Runs for each compiled model of the folder.
class CompiledModels : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam().empty()) GTEST_SKIP() << "models/compiled not installed: set WEIGHTMILL_MODELS_DIR";
  }
};

std::vector<std::string> models() {
  std::vector<std::string> names;
  if (!fs::exists(folder() / "streams.json")) return {""};
  const nlohmann::json streams = read_json(folder() / "streams.json");
  for (const auto& [name, entry] : streams.items()) names.push_back(name);
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.empty() ? "none" : info.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, CompiledModels, testing::ValuesIn(models()), test_name);

void expect_row(const StreamRow& row, const nlohmann::json& wanted) {
  EXPECT_EQ(row.offset, wanted.at("offset").get<std::uint64_t>());
  EXPECT_EQ(row.size_bytes, wanted.at("length").get<std::uint64_t>());
  EXPECT_EQ(row.op, wanted.at("op").get<std::string>());
  EXPECT_EQ(row.first_op, wanted.at("first_op").get<std::size_t>());
  EXPECT_EQ(row.core, wanted.at("core").get<unsigned>());
  EXPECT_EQ(row.uses, wanted.at("uses").get<std::size_t>());
  EXPECT_EQ(row.region, wanted.at("region").get<unsigned>());
  EXPECT_EQ(row.format == "fast" ? "fwd" : "swd", wanted.at("format").get<std::string>());
  EXPECT_EQ(row.sparse ? 1 : 0, wanted.value("sparse", 0));
  EXPECT_EQ(row.weights, wanted.at("weights").get<std::uint64_t>());
  char crc[9];
  std::snprintf(crc, sizeof crc, "%08x", row.crc32);
  EXPECT_EQ(crc, wanted.at("crc32").get<std::string>());
  EXPECT_EQ(row.distinct, wanted.at("distinct").get<std::uint64_t>());
  EXPECT_EQ(row.zeros, wanted.at("zeros").get<std::uint64_t>());
  EXPECT_NEAR(row.bits_per_weight(), wanted.at("bits_per_weight").get<double>(), 0.0006);
}

TEST_P(CompiledModels, StreamTableIsTheExpectedOne) {
  const Compiled model(GetParam());
  const auto wanted = read_json(folder() / "streams.json").at(GetParam());
  const CompiledReport report = inspect_programs(model.programs, 1);
  ASSERT_EQ(report.streams.size(), wanted.at("streams").size());
  for (std::size_t i = 0; i < report.streams.size(); ++i) {
    SCOPED_TRACE(i);
    expect_row(report.streams[i], wanted.at("streams")[i]);
  }
  const auto& streams = wanted.at("command_streams");
  ASSERT_EQ(report.command_words.size(), streams.size());
  for (std::size_t i = 0; i < streams.size(); ++i) {
    EXPECT_EQ(report.command_words[i], streams[i].at("words").get<std::uint64_t>());
    EXPECT_EQ(report.hw_ops[i], streams[i].at("hw_ops").get<std::uint64_t>());
    EXPECT_EQ(model.file.operators[i].payload.data() - model.bytes.data(),
              streams[i].at("file_offset").get<std::ptrdiff_t>());
    EXPECT_EQ(model.file.operators[i].payload.size(), streams[i].at("length").get<std::size_t>());
  }
}

TEST_P(CompiledModels, CoverageIsTheExpectedOne) {
  const Compiled model(GetParam());
  const auto entry = read_json(folder() / "streams.json").at(GetParam());
  const auto& wanted = entry.at("coverage");
  const TensorCoverage coverage = inspect_programs(model.programs, 1).coverage;
  EXPECT_EQ(coverage.size_bytes, wanted.at("flash").get<std::uint64_t>());
  EXPECT_EQ(coverage.weights, wanted.at("weights").get<std::uint64_t>());
  EXPECT_EQ(coverage.scales, wanted.at("scales").get<std::uint64_t>());
  EXPECT_EQ(coverage.copied, wanted.at("dma_other").get<std::uint64_t>());
  EXPECT_EQ(coverage.constants, wanted.at("const_fm").get<std::uint64_t>());
  EXPECT_EQ(coverage.rest, wanted.at("rest").get<std::uint64_t>());
  EXPECT_EQ(coverage.rest_nonzero, wanted.at("rest_nonzero").get<std::uint64_t>());
  std::uint64_t dead = 0;
  for (const auto& [begin, end] : coverage.dead) dead += end - begin;
  EXPECT_EQ(dead, wanted.at("dead").get<std::uint64_t>());
  EXPECT_EQ(coverage.dead, (entry.at("read_only_tensors")[0].at("unreferenced_zero").get<decltype(coverage.dead)>()));
}

TEST_P(CompiledModels, TheEncoderThatMadeAFileRebuildsItByteForByte) {
  const Compiled model(GetParam());
  const Analysis analysis = analyze(model.programs);
  bool is_reference = true, is_regor = true;
  Replacements reference, regor;
  for (const Stream& stream : analysis.streams) {
    const auto bytes = analysis.bytes_of(stream);
    if (stream.is_fast) {  // keeps its bytes
      reference.emplace_back();
      regor.emplace_back();
      continue;
    }
    const auto weights = decode_stream(analysis, stream).weights;
    reference.push_back(mlw::encode(weights, mlw::Effort::reference));
    regor.push_back(mlw::encode(weights, mlw::Effort::regor));
    is_reference =
        is_reference && std::equal(bytes.begin(), bytes.end(), reference.back()->begin(), reference.back()->end());
    is_regor = is_regor && std::equal(bytes.begin(), bytes.end(), regor.back()->begin(), regor.back()->end());
  }
  ASSERT_TRUE(is_reference || is_regor);
  const Rewritten same = rewrite(analysis, is_reference ? reference : regor, {});
  EXPECT_EQ(same.n_insertions, 0u);
  EXPECT_EQ(model.with(same.payloads, same.read_only), model.bytes);
}

Bytes smaller_of_both(std::span<const std::int16_t> weights) {
  Bytes reference = mlw::encode(weights, mlw::Effort::reference), regor = mlw::encode(weights, mlw::Effort::regor);
  return regor.size() < reference.size() ? regor : reference;
}

TEST_P(CompiledModels, SqueezesAndStaysTheSame) {
  const Compiled model(GetParam());
  const Squeezed squeezed = squeeze(model.programs, {smaller_of_both, false, 1, {}});
  EXPECT_LE(squeezed.summary.stream_bytes_after, squeezed.summary.stream_bytes_before);
  const Bytes bytes = model.with(squeezed.payloads, squeezed.read_only);
  EXPECT_LE(bytes.size(), model.bytes.size());
  const CompiledFile after = open_compiled(bytes, GetParam());
  const NpuPrograms programs = first_programs(after);
  EXPECT_EQ(compare_programs(model.programs, programs), std::nullopt);
  EXPECT_EQ(compare_programs(programs, model.programs), std::nullopt);
  const Squeezed again = squeeze(programs, {smaller_of_both, false, 2, {}});
  EXPECT_EQ(again.read_only, squeezed.read_only);
}

TEST_P(CompiledModels, KeepsDeadBytesWhenAsked) {
  const Compiled model(GetParam());
  const auto nothing = [](std::span<const std::int16_t>) { return Bytes(); };
  const Squeezed squeezed = squeeze(model.programs, {nothing, true, 1, {}});
  EXPECT_EQ(squeezed.summary.dead_bytes, 0u);
  EXPECT_LE(squeezed.read_only.size(), model.programs.read_only.size());
}

/// A valid stream of exactly `size` bytes: some weights, then filling.
Bytes stream_of_size(std::size_t size, testkit::Random& random) {
  std::vector<std::int16_t> weights(static_cast<std::size_t>(random.integer(1, 8)));
  for (auto& weight : weights) weight = static_cast<std::int16_t>(random.integer(-255, 255));
  Bytes stream = mlw::encode(weights, mlw::Effort::reference);
  if (stream.size() > size) stream = mlw::encode(std::vector<std::int16_t>{1}, mlw::Effort::reference);
  EXPECT_LE(stream.size(), size);
  stream.resize(size, 0xFF);
  return stream;
}

/// Puts valid streams of other lengths in; all else must be the same.
void expect_relocated(const Compiled& model, const Replacements& replacements, const Analysis& before) {
  const Rewritten rewritten = rewrite(before, replacements, dead_granules(before));
  const Bytes bytes = model.with(rewritten.payloads, rewritten.read_only);
  const CompiledFile file = open_compiled(bytes, "shortened");
  const NpuPrograms programs = first_programs(file);
  const Analysis after = analyze(programs);
  ASSERT_EQ(after.streams.size(), before.streams.size());
  const auto is_what_was_asked = [&](const Stream& a, const Stream& b) {
    const auto& wanted = replacements[before.first_stream_behind(a.offset)];
    const auto old = before.bytes_of(a), found = after.bytes_of(b);
    if (!wanted) return std::equal(old.begin(), old.end(), found.begin(), found.end());
    return std::equal(wanted->begin(), wanted->end(), found.begin(), found.end());
  };
  EXPECT_EQ(first_difference(before, after, is_what_was_asked), std::nullopt);
}

TEST_P(CompiledModels, StreamsOfOtherLengthsMoveAllElseAlong) {
  const Compiled model(GetParam());
  const Analysis before = analyze(model.programs);
  for (const std::uint64_t seed : testkit::seeds(7)) {
    SCOPED_TRACE(seed);
    testkit::Random random(seed);
    Replacements replacements;
    for (const Stream& stream : before.streams) {
      const auto granules = static_cast<std::int64_t>(stream.size / 16);
      const std::int64_t size = seed == 1 ? 1 : random.integer(1, granules);
      replacements.push_back(stream_of_size(static_cast<std::size_t>(size) * 16, random));
    }
    expect_relocated(model, replacements, before);
  }
}

}  // namespace
}  // namespace weightmill
