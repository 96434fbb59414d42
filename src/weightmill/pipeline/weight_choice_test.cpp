#include "weight_choice.h"

#include <gmock/gmock.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kKnown{"Conv", "MatMul", "Gather"};
const std::vector<std::string> kUsual{"Conv", "MatMul"};
const std::vector<std::string> kNames{"/head/box/Conv", "/head/cls/Conv", "table"};

QuantizedWeight weight(std::string node, std::string op) {
  QuantizedWeight result;
  result.node = std::move(node);
  result.op = std::move(op);
  return result;
}

QuantizedWeight judged(const WeightQuantizeOptions& options, QuantizedWeight weight) {
  WeightChoice(options, kKnown, kUsual, kNames).judge(weight);
  return weight;
}

std::string refusal(const WeightQuantizeOptions& options) {
  try {
    const WeightChoice choice(options, kKnown, kUsual, kNames);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::bad_option);
    return error.what();
  }
  return "";
}

TEST(WeightChoice, TakesTheUsualOperators) {
  EXPECT_EQ(judged({}, weight("/head/box/Conv", "Conv")).reason, "");
  EXPECT_THAT(judged({}, weight("table", "Gather")).reason, HasSubstr("Gather is not among"));
  WeightQuantizeOptions options;
  options.op_types = {"Gather"};
  EXPECT_EQ(judged(options, weight("table", "Gather")).reason, "");
}

TEST(WeightChoice, RemembersThePatternThatExcludes) {
  WeightQuantizeOptions options;
  options.exclude = {"table", "/head/cls/*"};
  EXPECT_EQ(judged(options, weight("/head/cls/Conv", "Conv")).excluded_by, "/head/cls/*");
  EXPECT_EQ(judged(options, weight("/head/box/Conv", "Conv")).reason, "");
}

TEST(WeightChoice, RefusesWordsThatMatchNothing) {
  WeightQuantizeOptions options;
  options.exclude = {"head.cls"};
  EXPECT_THAT(refusal(options), HasSubstr("did you mean /head/cls/Conv?"));
  options.exclude.clear();
  options.op_types = {"MatMull"};
  EXPECT_THAT(refusal(options), HasSubstr("did you mean MatMul?"));
}

WeightQuantizeReport report_of(std::vector<QuantizedWeight> weights) {
  WeightQuantizeReport report;
  report.weights = std::move(weights);
  return report;
}

ErrorCode code_of_conclusion(WeightQuantizeReport report) {
  try {
    conclude(report, "model.onnx");
  } catch (const Error& error) {
    return error.code;
  }
  return ErrorCode::internal;
}

TEST(Conclude, NothingToQuantizeIsAnError) {
  QuantizedWeight left = weight("a", "Conv");
  left.reason = "it is empty";
  EXPECT_EQ(code_of_conclusion(report_of({})), ErrorCode::unsupported);
  EXPECT_EQ(code_of_conclusion(report_of({left})), ErrorCode::unsupported);
  left.excluded_by = "*";
  EXPECT_EQ(code_of_conclusion(report_of({left})), ErrorCode::bad_option);
}

TEST(Conclude, StrictRefusesWhatWasLeft) {
  QuantizedWeight done = weight("a", "Conv");
  done.outcome = WeightOutcome::quantized;
  WeightQuantizeReport report = report_of({done, weight("b", "Conv")});
  EXPECT_EQ(code_of_conclusion(report), ErrorCode::internal) << "no error";
  report.options.fail_on_left = true;
  EXPECT_EQ(code_of_conclusion(report), ErrorCode::unsupported);
}

}  // namespace
}  // namespace weightmill
