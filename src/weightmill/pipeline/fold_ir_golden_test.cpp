#include "fold_ir.h"

#include <bit>
#include <filesystem>

#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <weightmill/base/half.h>

#include "dequantized_view.h"
#include "testkit/golden.h"

namespace weightmill {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testkit::DequantizedView;
using testkit::FloatConstant;
using testkit::IrFile;

class FoldIrGolden : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(set())) GTEST_SKIP() << "fold/ir not installed: set WEIGHTMILL_GOLDEN_DIR";
    folder_ = fs::temp_directory_path() / ("fold_ir_golden_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  static fs::path set() { return testkit::golden_dir() / "fold/ir"; }

  /// Calls body(name, folder of the case, expectation) for each case.
  template <class Body>
  static void for_each_case(const Body& body) {
    std::size_t n = 0;
    for (const auto& entry : fs::directory_iterator(set())) {
      if (!fs::exists(entry.path() / "expect.json")) continue;
      const auto bytes = IrFile::read_all(entry.path() / "expect.json");
      SCOPED_TRACE(entry.path().filename().string());
      body(entry.path().filename().string(), entry.path(), json::parse(bytes));
      ++n;
    }
    EXPECT_GT(n, 0u);
  }

  FoldReport fold(const fs::path& in, FoldSemantics semantics) const {
    FoldOptions options;
    options.semantics = semantics;
    options.jobs = 2;
    return fold_ir(in / "in.xml", out(), options);
  }
  fs::path out() const { return folder_ / "out.xml"; }

  fs::path folder_;
};

float rounded_to(const std::string& type, double value) {
  const auto x = static_cast<float>(value);
  return type == "f16" ? from_f16(to_f16(x)) : x;
}

/// Both NaN, or equal.
void expect_same_numbers(const FloatConstant& got, const json& want, const std::string& type) {
  EXPECT_EQ(got.shape, want.at("shape").get<Shape>());
  ASSERT_EQ(got.values.size(), want.at("values").size());
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    const float number = rounded_to(type, testkit::to_double(want.at("values")[i]));
    if (std::isnan(number)) {
      EXPECT_TRUE(std::isnan(got.values[i])) << i;
    } else {
      EXPECT_EQ(got.values[i], number) << i;
    }
  }
}

void expect_dequantization(const DequantizedView& got, const json& want, const std::string& type) {
  EXPECT_EQ(got.type, want.at("type").get<std::string>());
  EXPECT_EQ(got.shape, want.at("shape").get<Shape>());
  if (want.contains("q")) {
    EXPECT_EQ(got.codes, want.at("q").get<std::vector<int>>());
  }
  expect_same_numbers(got.scale, want.at("scale"), type);
  ASSERT_EQ(got.zero_point.has_value(), !want.at("zero_point").is_null());
  if (got.zero_point) expect_same_numbers(*got.zero_point, want.at("zero_point"), type);
}

std::string float_type(const json& expect) {
  return expect.contains("input") && expect["input"]["dtype"] == "float16" ? "f16" : "f32";
}

void expect_same_views(const std::map<std::string, DequantizedView>& got,
                       const std::map<std::string, DequantizedView>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, view] : want) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(got.contains(name));
    const DequantizedView& ours = got.at(name);
    EXPECT_EQ(ours.type, view.type);
    EXPECT_EQ(ours.shape, view.shape);
    EXPECT_EQ(ours.codes, view.codes);
    EXPECT_EQ(ours.scale.shape, view.scale.shape);
    const auto bits = [](const std::vector<float>& values) {
      std::vector<std::uint32_t> all;
      for (const float value : values)
        all.push_back(std::isnan(value) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(value));
      return all;
    };
    EXPECT_EQ(bits(ours.scale.values), bits(view.scale.values));
    ASSERT_EQ(ours.zero_point.has_value(), view.zero_point.has_value());
    if (!view.zero_point) continue;
    EXPECT_EQ(ours.zero_point->shape, view.zero_point->shape);
    EXPECT_EQ(bits(ours.zero_point->values), bits(view.zero_point->values));
  }
}

TEST_F(FoldIrGolden, OpenvinoSemanticsGivesOpenvinosModel) {
  for_each_case([&](const std::string&, const fs::path& folder, const json& expect) {
    const std::string issue =
        expect.contains("ov_issue") && expect["ov_issue"].is_string() ? expect["ov_issue"].get<std::string>() : "";
    if (issue.find("not reproducible") != std::string::npos || !fs::exists(folder / "ov.xml")) return;
    fold(folder, FoldSemantics::openvino);
    const IrFile ours(out()), theirs(folder / "ov.xml");
    EXPECT_EQ(ours.count("FakeQuantize"), theirs.count("FakeQuantize"));
    expect_same_views(ours.dequantized(), theirs.dequantized());
    EXPECT_LE(ours.bin().size(), theirs.bin().size());
  });
}

TEST_F(FoldIrGolden, StrictSemanticsGivesTheRecommendedResult) {
  for_each_case([&](const std::string&, const fs::path& folder, const json& expect) {
    if (!expect.contains("strict")) return;
    const json& strict = expect["strict"];
    const FoldReport report = fold(folder, FoldSemantics::strict);
    const IrFile ours(out());
    if (strict.at("status") != "folded") {
      ASSERT_EQ(report.count(FoldOutcome::left), 1u);
      EXPECT_EQ(report.tensors[0].reason.find(strict.at("reason").get<std::string>()), 0u) << report.tensors[0].reason;
      EXPECT_EQ(ours.count("FakeQuantize"), 1u);
      return;
    }
    ASSERT_EQ(report.count(FoldOutcome::folded), 1u) << report.tensors[0].reason;
    EXPECT_LE(report.tensors[0].max_error_steps, report.tensors[0].bound_steps);
    const bool same_as_ov = strict.at("same_as_ov").get<bool>();
    const json& want = same_as_ov ? expect["ov"]["dequant"][0] : strict;
    ASSERT_EQ(ours.dequantized().size(), 1u);
    expect_dequantization(ours.dequantized().begin()->second, want, float_type(expect));
    if (strict.contains("fused")) {
      EXPECT_EQ(report.tensors[0].zero_point_dropped, strict["fused"].get<bool>());
    }
  });
}


std::string payload_hex(const IrFile& file, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += {kDigits[file.bin()[i] >> 4], kDigits[file.bin()[i] & 15]};
  }
  return text;
}

TEST_F(FoldIrGolden, Mo2021SemanticsGivesThePythonPassesResult) {
  for_each_case([&](const std::string&, const fs::path& folder, const json& expect) {
    if (!expect.contains("mo2021") || expect["mo2021"].at("status") == "not-run" ||
        expect["mo2021"]["status"] == "error")
      return;
    const json& want = expect["mo2021"];
    const FoldReport report = fold(folder, FoldSemantics::mo2021);
    const IrFile ours(out());
    if (want.at("status") == "unchanged") {
      EXPECT_EQ(ours.count("FakeQuantize"), 1u);
      return;
    }
    ASSERT_EQ(report.count(FoldOutcome::folded), 1u) << report.tensors[0].reason;
    ASSERT_EQ(ours.dequantized().size(), 1u);
    DequantizedView view = ours.dequantized().begin()->second;
    if (want.contains("packed_hex_high_nibble_first")) {
      const auto hex = want["packed_hex_high_nibble_first"].get<std::string>();
      EXPECT_EQ(payload_hex(ours, hex.size() / 2), hex);
      view.codes = want.at("q").get<std::vector<int>>();
    }
    expect_dequantization(view, want, float_type(expect));
  });
}

TEST_F(FoldIrGolden, ASecondPassChangesNothing) {
  for_each_case([&](const std::string&, const fs::path& folder, const json&) {
    for (const auto semantics : {FoldSemantics::strict, FoldSemantics::openvino, FoldSemantics::mo2021}) {
      fold(folder, semantics);
      FoldOptions options;
      options.semantics = semantics;
      fold_ir(out(), folder_ / "again.xml", options);
      EXPECT_EQ(IrFile::read_all(out()), IrFile::read_all(folder_ / "again.xml"));
      EXPECT_EQ(IrFile(out()).bin(), IrFile(folder_ / "again.xml").bin());
    }
  });
}

TEST_F(FoldIrGolden, FoldsWhereOpenvinoGivesUp) {
  for_each_case([&](const std::string&, const fs::path& folder, const json& expect) {
    if (!expect.contains("ov") || !expect["ov"].is_object() || expect["ov"].value("status", "") != "exception") return;
    EXPECT_NO_THROW(fold(folder, FoldSemantics::openvino));
    EXPECT_NO_THROW(fold(folder, FoldSemantics::strict));
  });
}

}  // namespace
}  // namespace weightmill
