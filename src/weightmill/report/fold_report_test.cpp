#include "fold_report.h"

#include <gtest/gtest.h>

namespace weightmill {
namespace {

TEST(FoldReport, JsonNamesWhatWasLeftAndWhy) {
  FoldReport report;
  report.format = "onnx";
  report.bytes_before = 400;
  report.tensors.resize(2);
  report.tensors[0].outcome = FoldOutcome::folded;
  report.tensors[0].type_after = DType::i8;
  report.tensors[1].reason = "a weight is NaN";
  const auto json = to_json(report);
  EXPECT_EQ(json.at("schema"), "weightmill.fold/1");
  EXPECT_EQ(json.at("folded"), 1);
  EXPECT_EQ(json.at("left"), 1);
  EXPECT_EQ(json.at("bytes_before"), 400);
  EXPECT_EQ(json.at("tensors")[0].at("type_after"), "int8");
  EXPECT_EQ(json.at("tensors")[1].at("reason"), "a weight is NaN");
}

}  // namespace
}  // namespace weightmill
