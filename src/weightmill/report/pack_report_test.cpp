#include "report.h"

#include <gtest/gtest.h>

namespace weightmill {
namespace {

Packed two_layers() {
  Packed packed;
  packed.accelerator.name = "ethos-u55-128";
  packed.effort = "reference";
  PackedLayer layer;
  layer.op_name = "CONV_2D", layer.role = "weights", layer.weights_name = "w", layer.ohwi = {2, 1, 1, 8};
  layer.n_source_weights = 16, layer.weights_size_bytes = 32, layer.weights.resize(32), layer.scales.resize(32);
  layer.slices.resize(1);
  layer.slices[0].streams.resize(1);
  layer.slices[0].streams[0].n_ordered = 64;
  packed.layers.push_back(layer);
  layer.same_as = 0, layer.weights.clear(), layer.role = "input_to_forget";
  packed.layers.push_back(layer);
  packed.not_packed.push_back({0, 3, "FULLY_CONNECTED", "f", "weights are float32"});
  return packed;
}

TEST(PackReport, SumsLayersAndCountsSharedStreamsOnce) {
  const PackReport report = summarize(two_layers());
  ASSERT_EQ(report.rows.size(), 2u);
  EXPECT_DOUBLE_EQ(report.rows[0].bits_per_weight(), 16.0);
  EXPECT_EQ(report.rows[1].op_name, "CONV_2D input_to_forget");
  EXPECT_EQ(report.rows[1].stream_bytes, 0u);
  EXPECT_EQ(report.total.stream_bytes, 32u);
  EXPECT_EQ(report.total.record_bytes, 64u);
  EXPECT_EQ(report.total.n_weights, 32u);
}

TEST(PackReport, JsonNamesWhatWasLeft) {
  const auto json = to_json(summarize(two_layers()));
  EXPECT_EQ(json.at("schema"), "weightmill.pack/1");
  EXPECT_EQ(json.at("layers").size(), 2u);
  EXPECT_EQ(json.at("not_packed")[0].at("reason"), "weights are float32");
}

}  // namespace
}  // namespace weightmill
