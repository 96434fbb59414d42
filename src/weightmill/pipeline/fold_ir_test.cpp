#include "fold_ir.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <weightmill/base/error.h>

#include "dequantized_view.h"
#include "testkit/ir_builder.h"
#include "testkit/random.h"

namespace weightmill {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testkit::IrBuilder;
using testkit::IrFile;

class FoldIr : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / ("fold_ir_" + std::string(test->name()) + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path in() const { return folder_ / "in.xml"; }
  fs::path out() const { return folder_ / "out.xml"; }
  FoldReport fold(const IrBuilder& ir, const FoldOptions& options = {}) const {
    ir.write(in());
    return fold_ir(in(), out(), options);
  }
  /// The message that folding `in` ends in; nothing may have been written.
  std::string refusal(ErrorCode code, const fs::path& to, const FoldOptions& options = {}) const {
    const auto files = n_files();
    try {
      fold_ir(in(), to, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, code) << error.what();
      EXPECT_EQ(n_files(), files);
      return error.what();
    }
    ADD_FAILURE() << "was not refused";
    return "";
  }
  std::ptrdiff_t n_files() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }

  fs::path folder_;
};

std::vector<double> ramp(std::size_t n) {
  std::vector<double> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = -1.2 + 2.4 * static_cast<double>(i) / static_cast<double>(n);
  return values;
}

TEST_F(FoldIr, KeepsNamesPortsConsumersAndRtInfo) {
  IrBuilder ir;
  const int w = ir.constant("w", "f32", {2, 3}, ramp(6));
  const int low = ir.scalar("low", -1), high = ir.scalar("high", 1);
  const int fq = ir.fake_quantize("fq", w, {low, high, low, high}, 256,
                                  "<rt_info><attribute name=\"n\" version=\"0\" value=\"a\" /></rt_info>");
  const int x = ir.parameter("x", {2, 3});
  ir.result(ir.binary("sum", "Add", x, fq));
  ir.result(ir.binary("product", "Multiply", x, fq));
  const FoldReport report = fold(ir);
  ASSERT_EQ(report.count(FoldOutcome::folded), 1u);
  EXPECT_TRUE(report.tensors[0].zero_point_kept);
  EXPECT_EQ(report.tensors[0].bytes_before, 24u);
  EXPECT_EQ(report.tensors[0].bytes_after, 6u);
  const IrFile folded(out());
  const auto& layers = folded.ir().graph(0).layers;
  const auto multiply = std::ranges::find(layers, "fq", &IrLayer::name);
  ASSERT_NE(multiply, layers.end());
  EXPECT_EQ(multiply->type, "Multiply");
  EXPECT_EQ(multiply->uses.size(), 2u) << "both consumers";
  EXPECT_EQ(std::ranges::count(layers, "FakeQuantize", &IrLayer::type), 0);
  EXPECT_EQ(std::ranges::find(layers, "w", &IrLayer::name), layers.end()) << "nobody reads it";
  const std::string xml(folded.xml().begin(), folded.xml().end());
  std::size_t n = 0;
  for (auto at = xml.find("value=\"a\""); at != std::string::npos; at = xml.find("value=\"a\"", at + 1)) ++n;
  EXPECT_EQ(n, 6u) << "codes, Convert, zero point, Subtract, scale, Multiply";
  EXPECT_EQ(report.bytes_after, folded.xml().size() + folded.bin().size());
}

TEST_F(FoldIr, StoresEqualCodesOnceAndKeepsAFloatThatIsStillRead) {
  IrBuilder ir;
  const int w = ir.constant("w", "f32", {2, 3}, ramp(6));
  const int a = ir.fake_quantize("a", w, -1, 1, 255), b = ir.fake_quantize("b", w, -1, 1, 255);
  ir.result(ir.binary("sum", "Add", a, b));
  ir.result(ir.binary("more", "Add", a, w));
  fold(ir);
  const IrFile folded(out());
  EXPECT_EQ(folded.bin().size(), 24u + 6 + 4) << "the floats, the codes once, the scale once";
  const auto views = folded.dequantized();
  ASSERT_EQ(views.size(), 2u);
  EXPECT_EQ(views.at("a").codes, views.at("b").codes);
}

TEST_F(FoldIr, FoldsBehindOneConvertAndNotBehindTwo) {
  IrBuilder ir;
  const int w = ir.constant("w", "f16", {4}, ramp(4));
  const int once = ir.convert("once", w, "f32");
  const int half = ir.convert("half", ir.convert("wide", w, "f32"), "f32");
  ir.result(ir.fake_quantize("a", once, -1, 1, 255));
  ir.result(ir.fake_quantize("b", half, -1, 1, 255));
  const FoldReport report = fold(ir);
  EXPECT_EQ(report.count(FoldOutcome::folded), 1u);
  ASSERT_EQ(report.tensors.size(), 2u);
  EXPECT_THAT(report.tensors[1].reason, HasSubstr("comes through Convert"));
}

TEST_F(FoldIr, NamesWhatItLeavesAndWhy) {
  IrBuilder ir;
  const int bad = ir.constant("bad", "f32", {2}, {0, std::nan("")});
  const int good = ir.constant("good", "f32", {2}, {0, 1});
  ir.result(ir.fake_quantize("fq_bad", bad, -1, 1, 255));
  ir.result(ir.fake_quantize("fq_good", good, -1, 1, 255));
  const FoldReport report = fold(ir);
  EXPECT_EQ(report.count(FoldOutcome::folded), 1u);
  ASSERT_EQ(report.count(FoldOutcome::left), 1u);
  EXPECT_EQ(report.tensors[0].name, "fq_bad");
  EXPECT_EQ(report.tensors[0].reason, "NaN in weights");
  EXPECT_EQ(IrFile(out()).count("FakeQuantize"), 1u);
  fs::remove(out());
  fs::remove(folder_ / "out.bin");
  FoldOptions strict;
  strict.fail_on_left = true;
  EXPECT_THAT(refusal(ErrorCode::unsupported, out(), strict), HasSubstr("fq_bad: NaN in weights"));
}

TEST_F(FoldIr, LeavesActivationsAndCopiesAModelWithoutWeightsByteForByte) {
  IrBuilder ir;
  ir.result(ir.fake_quantize("fq", ir.parameter("x", {2}), -1, 1, 255));
  const FoldReport report = fold(ir);
  EXPECT_TRUE(report.tensors.empty());
  EXPECT_EQ(IrFile(out()).xml(), IrFile(in()).xml());
  EXPECT_EQ(IrFile(out()).bin(), IrFile(in()).bin());
}

TEST_F(FoldIr, LeavesTheModelAsItIsWhenToldTo) {
  IrBuilder ir;
  ir.result(ir.fake_quantize("fq", ir.constant("w", "f32", {2}, {0, 1}), -1, 1, 255));
  FoldOptions options;
  options.semantics = FoldSemantics::mo2021;
  options.compress_weights = false;
  fold(ir, options);
  EXPECT_EQ(IrFile(out()).xml(), IrFile(in()).xml());
}

TEST_F(FoldIr, FoldsTheQuantizeHalfOfAChainAndDropsItsZeroPoint) {
  IrBuilder ir;
  const int w = ir.constant("w", "f32", {4}, {-1, 0, 0.5, 1});
  const int low = ir.scalar("il", -1), high = ir.scalar("ih", 1), out_low = ir.scalar("ol", -100),
            out_high = ir.scalar("oh", 100);
  const int fq = ir.fake_quantize("fq", w, {low, high, out_low, out_high}, 201);
  const int up = ir.convert("up", ir.convert("down", fq, "i8"), "f32");
  const int sub = ir.binary("sub", "Subtract", up, ir.scalar("zp", 5));
  ir.result(ir.binary("mul", "Multiply", sub, ir.scalar("scale", 0.01)));
  const FoldReport report = fold(ir);
  ASSERT_EQ(report.count(FoldOutcome::folded), 1u);
  EXPECT_TRUE(report.tensors[0].zero_point_dropped);
  const auto view = IrFile(out()).dequantized().at("mul");
  EXPECT_EQ(view.codes_name, "down");
  EXPECT_EQ(view.codes, (std::vector<int>{-105, -5, 45, 95}));
  EXPECT_FALSE(view.zero_point.has_value());
}

TEST_F(FoldIr, DropsZeroPointsOfChainsWhenAskedTo) {
  IrBuilder ir;
  const int up = ir.convert("up", ir.constant("codes", "i8", {2, 2}, {-100, 0, 7, 100}), "f32");
  const int sub = ir.binary("sub", "Subtract", up, ir.constant("zp", "f32", {2, 1}, {-3, 4}));
  ir.result(ir.binary("mul", "Multiply", sub, ir.scalar("scale", 0.5)));
  EXPECT_EQ(fold(ir).tensors.size(), 0u);
  FoldOptions chains;
  chains.zero_points_of_chains = true;
  FoldOptions mo2021;
  mo2021.semantics = FoldSemantics::mo2021;
  for (const FoldOptions& options : {chains, mo2021}) {
    const FoldReport report = fold(ir, options);
    ASSERT_EQ(report.count(FoldOutcome::zero_point), 1u);
    const auto view = IrFile(out()).dequantized().at("mul");
    EXPECT_EQ(view.codes, (std::vector<int>{-97, 3, 3, 96}));
    EXPECT_FALSE(view.zero_point.has_value());
    EXPECT_EQ(IrFile(out()).bin().size(), 4u + 4) << "codes and scale";
  }
}

TEST_F(FoldIr, FoldsInsideBodies) {
  IrBuilder body;
  body.result(body.fake_quantize("fq", body.constant("w", "f32", {2}, {0, 1}), -1, 1, 255));
  const std::string inner = body.xml();
  const auto begin = inner.find("<layers>"), end = inner.find("<rt_info");
  std::ofstream(in())
      << "<net name=\"a\" version=\"11\"><layers><layer id=\"0\" name=\"if\" type=\"If\" version=\"opset8\"><then_body>"
      << inner.substr(begin, end - begin) << "</then_body></layer></layers><edges /></net>";
  std::ofstream bin(folder_ / "in.bin", std::ios::binary);
  bin.write(reinterpret_cast<const char*>(body.bin().data()), static_cast<std::streamsize>(body.bin().size()));
  bin.close();
  EXPECT_EQ(fold_ir(in(), out(), {}).count(FoldOutcome::folded), 1u);
  EXPECT_EQ(IrFile(out()).count("FakeQuantize"), 0u);
}

TEST_F(FoldIr, ReadsUnalignedAndOverlappingPayloads) {
  IrBuilder ir;
  ir.raw_constant("pad", "u8", {1}, {7});
  const int w = ir.constant("w", "f32", {5}, ramp(5));
  ir.result(ir.fake_quantize("fq", w, -1, 1, 255));
  ir.write(in());
  std::string xml(reinterpret_cast<const char*>(IrFile::read_all(in()).data()), fs::file_size(in()));
  // A second Const over the last three of the five floats.
  const auto at = xml.find("</layers>");
  xml.insert(at,
             "<layer id=\"90\" name=\"tail\" type=\"Const\" version=\"opset1\"><data element_type=\"f32\" shape=\"3\" "
             "offset=\"9\" "
             "size=\"12\" /><output><port id=\"0\" precision=\"FP32\"><dim>3</dim></port></output></layer>");
  std::ofstream(in()) << xml;
  EXPECT_EQ(fold_ir(in(), out(), {}).count(FoldOutcome::folded), 1u);
  const IrFile before(in()), after(out());
  const auto floats = [](const IrFile& file) {
    const auto& layers = file.ir().graph(0).layers;
    const auto tail = static_cast<std::size_t>(std::ranges::find(layers, "tail", &IrLayer::name) - layers.begin());
    const auto bytes = file.ir().constant(0, tail).bytes;
    return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
  };
  EXPECT_EQ(floats(before), floats(after));
}

TEST_F(FoldIr, AnyNumberOfThreadsWritesTheSameBytes) {
  testkit::Random random(2);
  IrBuilder ir;
  std::vector<double> weights(700000);
  for (double& weight : weights) weight = random.normal();
  ir.result(ir.fake_quantize("a", ir.constant("w", "f32", {700, 1000}, weights), -2, 2.2, 256));
  ir.result(ir.fake_quantize("b", ir.constant("v", "f16", {700, 1000}, weights), -1, 1, 15));
  std::vector<std::uint8_t> first;
  for (const int jobs : {1, 2, 5}) {
    FoldOptions options;
    options.jobs = jobs;
    fold(ir, options);
    const auto bin = IrFile(out()).bin();
    if (first.empty()) first = bin;
    EXPECT_EQ(bin, first) << jobs;
  }
}

TEST_F(FoldIr, ADryRunWritesNothingAndReportsTheSame) {
  IrBuilder ir;
  ir.result(ir.fake_quantize("fq", ir.constant("w", "f32", {9}, ramp(9)), -1, 1, 15));
  const FoldReport wet = fold(ir);
  const auto files = n_files();
  const FoldReport dry = fold_ir(in(), "", {});
  EXPECT_EQ(n_files(), files);
  EXPECT_EQ(dry.bytes_after, wet.bytes_after);
  EXPECT_EQ(dry.tensors.at(0).max_error_steps, wet.tensors.at(0).max_error_steps);
  EXPECT_EQ(dry.output, "");
}

TEST_F(FoldIr, RefusesToWriteOverItsInput) {
  IrBuilder ir;
  ir.result(ir.fake_quantize("fq", ir.constant("w", "f32", {2}, {0, 1}), -1, 1, 255));
  ir.write(in());
  const auto before = IrFile(in()).bin();
  EXPECT_THAT(refusal(ErrorCode::bad_option, in()), HasSubstr("is the input"));
  fs::create_symlink(in(), folder_ / "link.xml");
  EXPECT_THAT(refusal(ErrorCode::bad_option, folder_ / "link.xml"), HasSubstr("is the input"));
  fs::create_hard_link(folder_ / "in.bin", folder_ / "other.bin");
  EXPECT_THAT(refusal(ErrorCode::bad_option, folder_ / "other.xml"), HasSubstr("is the input"));
  EXPECT_THAT(refusal(ErrorCode::bad_option, folder_ / "out.onnx"), HasSubstr(".xml"));
  EXPECT_THAT(refusal(ErrorCode::bad_file, folder_ / "nowhere" / "out.xml"), HasSubstr("cannot be written"));
  EXPECT_EQ(IrFile(in()).bin(), before);
}

TEST_F(FoldIr, NamesAMissingBin) {
  IrBuilder ir;
  ir.result(ir.fake_quantize("fq", ir.constant("w", "f32", {2}, {0, 1}), -1, 1, 255));
  ir.write(in());
  fs::remove(folder_ / "in.bin");
  EXPECT_THAT(refusal(ErrorCode::bad_file, out()), HasSubstr("in.bin (missing) has 0"));
  fs::remove(in());
  EXPECT_THAT(refusal(ErrorCode::bad_file, out()), HasSubstr("in.xml"));
}

TEST_F(FoldIr, AFullDiskLeavesNothingBehind) {
  IrBuilder ir;
  ir.result(ir.fake_quantize("fq", ir.constant("w", "f32", {300000}, ramp(300000)), -1, 1, 255));
  ir.write(in());
  const auto before = IrFile(in()).bin();
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{100000, limit.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THAT(refusal(ErrorCode::bad_file, out()), HasSubstr("cannot be written"));
  ::setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_EQ(IrFile(in()).bin(), before);
}

TEST_F(FoldIr, RefusesLayersThatAskForTheSameBytesOverAndOver) {
  std::string xml = "<net name=\"a\" version=\"11\"><layers>";
  constexpr std::size_t kBytes = std::size_t{16} << 20;
  for (int i = 0; i < 100; ++i) {
    xml += "<layer id=\"" + std::to_string(i) +
           "\" name=\"c\" type=\"Const\" version=\"opset1\"><data element_type=\"u8\" shape=\"" +
           std::to_string(kBytes - 100) + "\" offset=\"" + std::to_string(i) + "\" size=\"" +
           std::to_string(kBytes - 100) + "\" /><output><port id=\"0\" /></output></layer>";
  }
  IrBuilder ir;
  ir.result(ir.fake_quantize("fq", ir.constant("w", "f32", {2}, {0, 1}), -1, 1, 255));
  const std::string inner = ir.xml();
  const auto begin = inner.find("<layers>"), end = inner.find("<rt_info");
  xml += "<layer id=\"200\" name=\"if\" type=\"If\"><then_body>" + inner.substr(begin, end - begin) +
         "</then_body></layer></layers></net>";
  const std::vector<std::uint8_t> bin(kBytes);
  try {
    plan_fold_ir({reinterpret_cast<const std::uint8_t*>(xml.data()), xml.size()}, bin, {});
    ADD_FAILURE() << "was not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("overlap"));
  }
}

TEST_F(FoldIr, OddValuesOfLevelsAreLeft) {
  for (const char* levels : {"", "x", "-3", "0", "1", "99999999999999999999", "2.5"}) {
    IrBuilder ir;
    ir.result(ir.fake_quantize("fq", ir.constant("w", "f32", {2}, {0, 1}), -1, 1, 255));
    ir.write(in());
    std::string xml(reinterpret_cast<const char*>(IrFile::read_all(in()).data()), fs::file_size(in()));
    xml.replace(xml.find("levels=\"255\""), 12, std::string("levels=\"") + levels + "\"");
    std::ofstream(in()) << xml;
    const FoldReport report = fold_ir(in(), out(), {});
    ASSERT_EQ(report.count(FoldOutcome::left), 1u) << levels;
    EXPECT_THAT(report.tensors[0].reason, HasSubstr("levels")) << levels;
  }
}

}  // namespace
}  // namespace weightmill
