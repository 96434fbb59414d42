#include "quantize_report.h"

#include <limits>

#include <gtest/gtest.h>

namespace weightmill {
namespace {

WeightQuantizeReport example() {
  WeightQuantizeReport report;
  report.input = "in.onnx";
  report.options.min_sqnr_db = 40;
  QuantizedWeight good, poor, left;
  good.outcome = poor.outcome = WeightOutcome::quantized;
  good.sqnr_db = good.worst_sqnr_db = std::numeric_limits<double>::infinity();
  poor.sqnr_db = 39.5;
  left.reason = "it is empty";
  report.weights = {good, poor, left};
  return report;
}

TEST(QuantizeReport, CountsOutcomes) {
  const auto json = to_json(example());
  EXPECT_EQ(json["schema"], "weightmill.quantize/1");
  EXPECT_EQ(json["quantized"], 2);
  EXPECT_EQ(json["left"], 1);
  EXPECT_EQ(json["below_min_sqnr"], 1);
}

TEST(QuantizeReport, ExactWeightsHaveNoFiniteSqnr) {
  const auto json = to_json(example());
  EXPECT_TRUE(json["weights"][0]["sqnr_db"].is_null());
  EXPECT_EQ(json["weights"][1]["sqnr_db"], 39.5);
}

}  // namespace
}  // namespace weightmill
