#include "compress_weights.h"

#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include <testkit/golden.h>
#include <testkit/random.h>
#include <weightmill/base/error.h>
#include "accelerator.h"

namespace weightmill {
namespace {

using testkit::GoldenSet;
using testkit::to_double;

CompressRequest request_of_case(const GoldenSet& set, const nlohmann::json& c) {
  const auto shape = c.at("shape").get<std::vector<int>>();
  const std::array<int, 4> ohwi =
      shape.size() == 2 ? std::array{shape[1], 1, 1, shape[0]} : std::array{shape[3], shape[0], shape[1], shape[2]};
  const auto bytes = set.blob(c.at("quant_values"));
  WeightValues values = bytes;
  if (c.at("dtype") == "int8") values = std::span(reinterpret_cast<const std::int8_t*>(bytes.data()), bytes.size());
  const std::map<std::string, NpuBlockType> types{{"ConvolutionMxN", NpuBlockType::convolution},
                                                  {"ConvolutionDepthWise", NpuBlockType::depthwise},
                                                  {"VectorProduct", NpuBlockType::vector_product}};
  CompressRequest r;
  r.weights = volume_from_hwio(values, ohwi, c.at("zero_point"));
  r.block_type = types.at(c.at("npu_block_type"));
  r.ofm_block_depth = c.at("ofm_block_depth");
  r.ofm_depth_step = c.at("ofm_depth_step");
  r.ifm_bits = c.at("ifm_bitdepth");
  r.dilation_h = c.at("dilation_hw")[0];
  r.dilation_w = c.at("dilation_hw")[1];
  r.flip = c.at("consumer_type") == "Conv2DBackpropInputSwitchedBias";
  r.double_buffer = c.at("sub_purpose") == "DoubleBuffer";
  return r;
}

void check_case(const GoldenSet& set, const nlohmann::json& c, const CompressedWeights& result) {
  const std::map<std::string, Traversal> traversals{{"DepthFirst", Traversal::depth_first},
                                                    {"PartKernelFirst", Traversal::part_kernel_first},
                                                    {"DepthWise", Traversal::depthwise},
                                                    {"Default", Traversal::depth_first}};
  EXPECT_EQ(result.traversal, traversals.at(c.at("block_traversal")));
  ASSERT_EQ(result.values.size(), c.at("compressed_values").size());
  for (std::size_t k = 0; k < result.values.size(); ++k) {
    EXPECT_TRUE(std::ranges::equal(result.values[k], set.blob(c.at("compressed_values")[k])));
    EXPECT_EQ(result.scales[k], to_double(c.at("weight_compression_scales")[k]));
  }
  EXPECT_EQ(result.substream_offsets, c.at("substream_offsets").get<std::vector<std::vector<std::uint64_t>>>());
  EXPECT_EQ(result.offsets, c.at("weight_compressed_offsets").get<std::vector<std::uint64_t>>());
  EXPECT_EQ(result.worst_scale, to_double(c.at("compression_scale_for_worst_weight_stream")));
  EXPECT_EQ(result.mean_scale, to_double(c.at("storage_compression_scale")));
  EXPECT_EQ(result.brick_size, (c.at("brick_size").get<std::array<int, 4>>()));
  EXPECT_EQ(result.storage_shape, (c.at("storage_shape").get<std::array<std::uint64_t, 4>>()));
}

TEST(CompressWeights, FollowsTheClassicFlow) {
  const auto set = GoldenSet::open("ethosu/v2020_compress");
  if (!set) GTEST_SKIP() << "ethosu/v2020_compress not installed: set WEIGHTMILL_GOLDEN_DIR";
  for (const auto& c : set->cases()) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const CompressRequest request = request_of_case(*set, c);
    check_case(*set, c, compress_weights(request, find_accelerator(c.at("accelerator").get<std::string>())));
  }
}

struct Fixture {
  std::vector<std::int8_t> values = std::vector<std::int8_t>(40 * 3 * 3 * 10);
  CompressRequest request;
  Fixture() {
    testkit::Random random(5);
    for (auto& value : values) value = static_cast<std::int8_t>(random.integer(-128, 127));
    request.weights = volume_from_ohwi(std::span(std::as_const(values)), {40, 3, 3, 10}, 0);
    request.ofm_block_depth = 16;
    request.ofm_depth_step = 8;
  }
};

TEST(CompressWeights, ThreadsChangeNothing) {
  Fixture f;
  const Accelerator& npu = find_accelerator("ethos-u65-512");
  const CompressedWeights one = compress_weights(f.request, npu);
  f.request.jobs = 3;
  const CompressedWeights three = compress_weights(f.request, npu);
  EXPECT_EQ(one.values, three.values);
  EXPECT_EQ(one.offsets, three.offsets);
}

TEST(CompressWeights, ACacheHitOnlyMakesTheStorageShapeAnew) {
  Fixture f;
  const Accelerator& npu = find_accelerator("ethos-u55-256");
  WeightCache cache;
  const CompressedWeights single = cache.compress(1, f.request, npu);
  f.request.double_buffer = true;
  const CompressedWeights buffered = cache.compress(1, f.request, npu);
  EXPECT_EQ(cache.n_hits(), 1u);
  EXPECT_EQ(buffered.values, single.values);
  EXPECT_EQ(buffered.storage_shape, compress_weights(f.request, npu).storage_shape);
  EXPECT_NE(buffered.storage_shape, single.storage_shape);
  f.request.ofm_depth_step = 16;
  cache.compress(1, f.request, npu);
  EXPECT_EQ(cache.n_hits(), 1u);
}

TEST(CompressWeights, RefusesRequestsThatMakeNoSense) {
  const auto refuses = [](const char* npu, auto&& change) {
    Fixture f;
    change(f.request);
    EXPECT_THROW(compress_weights(f.request, find_accelerator(npu)), Error);
  };
  refuses("ethos-u85-256", [](CompressRequest&) {});
  refuses("ethos-u55-32", [](CompressRequest& r) { r.ofm_block_depth = 0; });
  refuses("ethos-u65-512", [](CompressRequest& r) { r.ofm_block_depth = 1; });
  refuses("ethos-u55-32", [](CompressRequest& r) { r.ofm_depth_step = 0; });
  refuses("ethos-u55-32", [](CompressRequest& r) { r.dilation_h = 0; });
  refuses("ethos-u55-32", [](CompressRequest& r) { r.dilation_w = 9; });
  refuses("ethos-u55-32", [](CompressRequest& r) { r.weights.zero_point = 300; });
}

TEST(WeightVolume, RefusesShapesThatDoNotFitTheValues) {
  const std::vector<std::int8_t> values(12);
  EXPECT_THROW(volume_from_ohwi(std::span(values), {1, 1, 1, 11}, 0), Error);
  EXPECT_THROW(volume_from_ohwi(std::span(values), {12, 0, 1, 1}, 0), Error);
  EXPECT_THROW(volume_from_hwio(std::span(values), {-1, 1, 1, -12}, 0), Error);
  EXPECT_THROW(volume_from_hwio(std::span(values), {1 << 30, 1 << 30, 1 << 30, 1}, 0), Error);
}

TEST(NumpyMean, AddsInNumpysOrder) {
  EXPECT_EQ(numpy_mean({}), 0);
  EXPECT_EQ(numpy_mean(std::vector{1e16, 1.0, -1e16, 1.0}), 0.25);  // left to right: the first 1 is lost
  std::vector<double> ones(1000, 1.0);
  EXPECT_EQ(numpy_mean(ones), 1.0);
}

}  // namespace
}  // namespace weightmill
