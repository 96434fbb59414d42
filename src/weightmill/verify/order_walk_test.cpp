#include "order_walk.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include <testkit/golden.h>
#include <testkit/random.h>
#include <weightmill/codec/codec.h>

namespace weightmill::verify {
namespace {

constexpr const char* kNoGolden = "ethosu golden sets not installed: set WEIGHTMILL_GOLDEN_DIR";

BrickGeometry u55(Traversal traversal, int block_depth) {
  BrickGeometry g;
  g.traversal = traversal;
  g.ofm_block_depth = block_depth;
  return g;
}

/// The ordered weights: what a right stream decodes to.
std::vector<std::int16_t> ordered(const std::vector<std::int64_t>& order, const std::vector<std::int16_t>& volume) {
  std::vector<std::int16_t> result;
  for (const std::int64_t index : order)
    result.push_back(index == kPadding ? std::int16_t{0} : volume[static_cast<std::size_t>(index)]);
  return result;
}

TEST(OrderWalk, OneChannelOfADepthwiseKernelIsPaddedToFourElements) {
  BrickGeometry g = u55(Traversal::depthwise, 8);
  g.ofm_ublock_depth = 1;
  const auto order = walk_order(g, StreamFormat::standard, {1, 3, 1, 1});
  EXPECT_EQ(order, (std::vector<std::int64_t>{0, 1, 2, kPadding}));
}

TEST(OrderWalk, DepthFirstPadsInputChannelsToTheBlock) {
  BrickGeometry g = u55(Traversal::depth_first, 8);
  const auto order = walk_order(g, StreamFormat::standard, {8, 1, 1, 3});
  EXPECT_EQ(order.size(), 8u * 32u);
  EXPECT_EQ(std::vector<std::int64_t>(order.begin(), order.begin() + 10),
            (std::vector<std::int64_t>{0, 1, 2, -1, -1, -1, -1, -1, 3, 4}));
}

TEST(OrderWalk, MeetsEachWeightOnceWhereBlocksAreWholeUblocks) {
  for (const auto seed : testkit::seeds(300)) {
    SCOPED_TRACE(seed);
    testkit::Random random(seed);
    BrickGeometry g;
    g.family = random.chance(0.5) ? NpuFamily::u85 : NpuFamily::u55;
    g.traversal = static_cast<Traversal>(random.integer(0, 2));
    g.ifm_bits = random.chance(0.5) ? 8 : 16;
    g.cores = g.family == NpuFamily::u85 ? 1 << random.integer(0, 2) : 1;
    g.ofm_ublock_depth = g.family == NpuFamily::u85 ? 16 : 8;
    g.ofm_block_depth = g.ofm_ublock_depth * static_cast<int>(random.integer(1, 3));
    g.ifm_block_depth = g.traversal == Traversal::part_kernel_first ? 16 : 64;
    g.sub_kernel_height = random.chance(0.5) ? 8 : 4;
    g.sub_kernel_width = random.chance(0.5) ? 8 : 4;
    g.stride_y = static_cast<int>(random.integer(1, 3));
    g.stride_x = static_cast<int>(random.integer(1, 3));
    g.macs_per_cycle = 256;
    const bool depthwise = g.traversal == Traversal::depthwise;
    const std::array<int, 4> ohwi{static_cast<int>(random.integer(1, 40)), static_cast<int>(random.integer(1, 10)),
                                  static_cast<int>(random.integer(1, 10)),
                                  depthwise ? 1 : static_cast<int>(random.integer(1, 80))};
    ASSERT_EQ(geometry_problem(g, ohwi), "");
    std::vector<std::int64_t> met;
    for (g.core = 0; g.core < g.cores; ++g.core) {
      for (const std::int64_t index : walk_order(g, StreamFormat::standard, ohwi)) {
        if (index != kPadding) met.push_back(index);
      }
    }
    std::sort(met.begin(), met.end());
    std::vector<std::int64_t> all(static_cast<std::size_t>(ohwi[0] * ohwi[1] * ohwi[2] * ohwi[3]));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(met, all);
  }
}

TEST(OrderWalk, RefusesGeometriesThatWouldNotEnd) {
  BrickGeometry g = u55(Traversal::depth_first, 0);
  EXPECT_NE(geometry_problem(g, {1, 1, 1, 1}), "");
  g.ofm_block_depth = 8, g.ofm_ublock_depth = 0;
  EXPECT_NE(geometry_problem(g, {1, 1, 1, 1}), "");
  g.ofm_ublock_depth = 8, g.sub_kernel_width = 0;
  EXPECT_NE(geometry_problem(g, {1, 1, 1, 1}), "");
  g = u55(Traversal::depth_first, 8), g.family = NpuFamily::u85, g.ifm_block_depth = 64, g.cores = 4;
  EXPECT_NE(geometry_problem(g, {1, 1, 1, 1}), "") << "8 channels do not divide over 4 cores of 4";
}

TEST(OrderWalk, EqualsVelasStreamsForU55AndU65) {
  const auto set = testkit::GoldenSet::open("ethosu/reorder_vectors");
  if (!set) GTEST_SKIP() << kNoGolden;
  for (const auto& c : set->cases()) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    BrickGeometry g = u55(c.at("is_depthwise").get<bool>() ? Traversal::depthwise : Traversal::depth_first,
                          c.at("ofm_block_depth").get<int>());
    if (c.at("part_kernel").get<bool>()) g.traversal = Traversal::part_kernel_first;
    if (c.at("is_depthwise").get<bool>() && c.at("part_kernel").get<bool>())
      continue;  // no NPU runs this; the packer's own tests have it
    g.ifm_bits = c.at("ifm_bitdepth").get<int>();
    g.ifm_ublock_depth = c.at("ifm_ublock_depth").get<int>();
    g.ofm_ublock_depth = c.at("ofm_ublock_depth").get<int>();
    g.sub_kernel_height = c.at("decomp_h").get<int>();
    g.sub_kernel_width = c.at("decomp_w").get<int>();
    const auto ohwi = c.at("ohwi").get<std::array<int, 4>>();
    EXPECT_EQ(mlw::decode(set->blob(c.at("encoded"))),
              ordered(walk_order(g, StreamFormat::standard, ohwi), set->blob_i16(c.at("weights"))));
  }
}

/// A depthwise volume is stored as 1HWC; the order is stated for OHWI = C, H, W, 1.
std::vector<std::int16_t> channels_first(const std::vector<std::int16_t>& hwc, int n_spatial, int n_channels) {
  std::vector<std::int16_t> result;
  for (int c = 0; c < n_channels; ++c) {
    for (int p = 0; p < n_spatial; ++p) result.push_back(hwc[static_cast<std::size_t>(p * n_channels + c)]);
  }
  return result;
}

TEST(OrderWalk, EqualsRegorsStreamsForU85) {
  const auto set = testkit::GoldenSet::open("ethosu/u85_vectors");
  if (!set) GTEST_SKIP() << kNoGolden;
  for (const auto& c : set->cases()) {
    if (!c.contains("stream0")) continue;  // a refusal
    SCOPED_TRACE(c.at("name").get<std::string>());
    BrickGeometry g;
    g.family = NpuFamily::u85;
    const auto word = c.at("traversal").get<std::string>();
    g.traversal = word == "DW"   ? Traversal::depthwise
                  : word == "PK" ? Traversal::part_kernel_first
                                 : Traversal::depth_first;
    g.ifm_bits = c.at("ifm_bitdepth").get<int>();
    g.ofm_block_depth = c.at("ofm_block_depth").get<int>();
    g.ifm_block_depth = c.at("ifm_block_depth").get<int>();
    g.ofm_ublock_depth = c.at("ofm_ublock_depth").get<int>();
    g.stride_x = c.at("stride_xy")[0].get<int>(), g.stride_y = c.at("stride_xy")[1].get<int>();
    g.sub_kernel_width = 8 / c.at("dilation_xy")[0].get<int>(),
    g.sub_kernel_height = 8 / c.at("dilation_xy")[1].get<int>();
    g.sparse = c.at("sparse").get<bool>();
    g.cores = c.at("cores").get<int>();
    g.macs_per_cycle = c.at("macs").get<int>();
    const auto shape = c.at("shape").get<std::array<int, 4>>();
    const bool is_1hwc = c.at("shape_kind").get<std::string>() == "1HWC";
    auto weights = set->blob_i16(c.at("weights"));
    if (is_1hwc) weights = channels_first(weights, shape[1] * shape[2], shape[3]);
    const std::array<int, 4> ohwi = is_1hwc ? std::array<int, 4>{shape[3], shape[1], shape[2], 1} : shape;
    for (g.core = 0; g.core < g.cores; ++g.core) {
      const auto stream = set->blob(c.at("stream" + std::to_string(g.core)));
      EXPECT_EQ(mlw::decode(stream), ordered(walk_order(g, StreamFormat::standard, ohwi), weights))
          << "core " << g.core;
    }
    if (!c.contains("fast")) continue;
    g.core = 0;
    const auto order = walk_order(g, StreamFormat::fast, ohwi);
    EXPECT_EQ(order.size(), c.at("fast_ordered_len").get<std::size_t>());
    EXPECT_EQ(mlw::decode_fast(set->blob(c.at("fast")), order.size()), ordered(order, weights));
  }
}

}  // namespace
}  // namespace weightmill::verify
