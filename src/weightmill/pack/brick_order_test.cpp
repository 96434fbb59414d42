#include "brick_order.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <testkit/golden.h>
#include <testkit/random.h>
#include <weightmill/base/error.h>
#include <weightmill/codec/codec.h>
#include "accelerator.h"
#include "traversal.h"

namespace weightmill {
namespace {

using testkit::GoldenSet;
using testkit::Random;

BrickGeometry geometry_of_case(const nlohmann::json& c) {
  BrickGeometry g;
  g.traversal = c.at("is_depthwise")  ? Traversal::depthwise
                : c.at("part_kernel") ? Traversal::part_kernel_first
                                      : Traversal::depth_first;
  g.ifm_bits = c.at("ifm_bitdepth");
  g.ofm_block_depth = c.at("ofm_block_depth");
  g.ofm_ublock_depth = c.at("ofm_ublock_depth");
  g.ifm_ublock_depth = c.at("ifm_ublock_depth");
  g.sub_kernel_height = c.at("decomp_h");
  g.sub_kernel_width = c.at("decomp_w");
  return g;
}

TEST(BrickOrder, MakesTheStreamsOfVela) {
  const auto set = GoldenSet::open("ethosu/reorder_vectors");
  if (!set) GTEST_SKIP() << "ethosu/reorder_vectors not installed: set WEIGHTMILL_GOLDEN_DIR";
  for (const auto& c : set->cases()) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const auto weights = set->blob_i16(c.at("weights"));
    const auto volume = volume_from_ohwi(std::span(weights), c.at("ohwi").get<std::array<int, 4>>(), 0);
    const auto order = brick_order(volume, geometry_of_case(c));
    EXPECT_EQ(order.size(), c.at("padded_length").get<std::size_t>());
    const auto stream = mlw::encode(order, mlw::Effort::reference);
    EXPECT_TRUE(std::ranges::equal(stream, set->blob(c.at("encoded"))));
  }
}

std::uint32_t crc32_of(std::span<const std::int16_t> values) {
  std::uint32_t crc = ~0u;
  for (const std::int16_t value : values) {
    for (const int shift : {0, 8}) {
      crc ^= static_cast<std::uint8_t>(static_cast<std::uint16_t>(value) >> shift);
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u);
    }
  }
  return ~crc;
}

BrickGeometry geometry_of_u85_case(const nlohmann::json& c) {
  const std::map<std::string, Traversal> traversals{
      {"DW", Traversal::depthwise}, {"DF", Traversal::depth_first}, {"PK", Traversal::part_kernel_first}};
  BrickGeometry g;
  g.family = NpuFamily::u85;
  g.traversal = traversals.at(c.at("traversal"));
  g.ifm_bits = c.at("ifm_bitdepth");
  g.ofm_block_depth = c.at("ofm_block_depth");
  g.ifm_block_depth = c.at("ifm_block_depth");
  g.ofm_ublock_depth = c.at("ofm_ublock_depth");
  g.stride_x = c.at("stride_xy")[0];
  g.stride_y = c.at("stride_xy")[1];
  g.sub_kernel_width = 8 / c.at("dilation_xy")[0].get<int>();
  g.sub_kernel_height = 8 / c.at("dilation_xy")[1].get<int>();
  g.sparse = c.at("sparse");
  g.cores = c.at("cores");
  g.macs_per_cycle = c.at("macs");
  return g;
}

/// The case's weights as OHWI: depthwise ones lie as [1, H, W, C].
WeightVolume volume_of_u85_case(const nlohmann::json& c, std::span<const std::int16_t> weights) {
  const auto s = c.at("shape").get<std::array<int, 4>>();
  if (c.at("shape_kind") == "1HWC") return volume_from_hwio(weights, {s[3], s[1], s[2], 1}, 0);
  return volume_from_ohwi(weights, s, 0);
}

void check_u85_streams(const GoldenSet& set, const nlohmann::json& c, const WeightVolume& volume, BrickGeometry g) {
  for (g.core = 0; g.core < g.cores; ++g.core) {
    const auto s = static_cast<std::size_t>(g.core);
    const auto order = brick_order(volume, g);
    EXPECT_EQ(order.size(), c.at("ordered_len")[s].get<std::size_t>());
    EXPECT_EQ(crc32_of(order), c.at("ordered_crc32")[s].get<std::uint32_t>());
    const auto stream = mlw::encode(order, mlw::Effort::regor);
    EXPECT_TRUE(std::ranges::equal(stream, set.blob(c.at("stream" + std::to_string(s)))));
  }
  if (!c.contains("fast")) return;
  const auto order = fast_order(volume, g);
  EXPECT_EQ(order.size(), c.at("fast_ordered_len").get<std::size_t>());
  EXPECT_EQ(crc32_of(order), c.at("fast_ordered_crc32").get<std::uint32_t>());
  const auto fast = mlw::encode_fast(order, g.sparse);
  ASSERT_TRUE(fast.has_value());
  EXPECT_TRUE(std::ranges::equal(*fast, set.blob(c.at("fast"))));
}

TEST(BrickOrder, MakesTheStreamsOfU85) {
  const auto set = GoldenSet::open("ethosu/u85_vectors");
  if (!set) GTEST_SKIP() << "ethosu/u85_vectors not installed: set WEIGHTMILL_GOLDEN_DIR";
  for (const auto& c : set->cases()) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const auto weights = set->blob_i16(c.at("weights"));
    const auto volume = volume_of_u85_case(c, weights);
    if (c.contains("error")) {
      EXPECT_EQ(c.at("error"), "not_sparse");
      EXPECT_FALSE(is_2_4_sparse(volume));
      continue;
    }
    EXPECT_TRUE(!c.at("sparse").get<bool>() || is_2_4_sparse(volume));
    check_u85_streams(*set, c, volume, geometry_of_u85_case(c));
  }
}

std::array<int, 4> random_shape(Random& random) {
  const auto extent = [&](int high) { return static_cast<int>(random.integer(1, high)); };
  return {extent(70), extent(random.chance(0.2) ? 19 : 4), extent(random.chance(0.2) ? 19 : 4), extent(140)};
}

/// A geometry as an accelerator of the table would run it.
BrickGeometry random_geometry(Random& random, const std::array<int, 4>& ohwi) {
  const auto table = accelerators();
  const Accelerator& npu =
      table[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(table.size()) - 1))];
  BrickGeometry g;
  g.family = npu.family;
  g.traversal = ohwi[3] == 1         ? Traversal::depthwise
                : random.chance(0.5) ? Traversal::part_kernel_first
                                     : Traversal::depth_first;
  g.ifm_bits = random.chance(0.3) ? 16 : 8;
  const auto& ublocks = npu.ofm_ublocks;
  g.ofm_ublock_depth =
      ublocks[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(ublocks.size()) - 1))].depth;
  g.ifm_ublock_depth = npu.ifm_ublock.depth;
  g.ofm_block_depth = static_cast<int>(random.integer(1, 4)) * g.ofm_ublock_depth;
  g.sparse = npu.family == NpuFamily::u85 && ohwi[3] > 1 && random.chance(0.3);
  g.ifm_block_depth = choose_ifm_block_depth(npu, g.traversal, g.ofm_ublock_depth, g.ifm_bits, g.sparse);
  g.stride_y = static_cast<int>(random.integer(1, 3));
  g.stride_x = static_cast<int>(random.integer(1, 3));
  g.sub_kernel_height = random.chance(0.5) ? 8 : 4;
  g.sub_kernel_width = random.chance(0.5) ? 8 : 4;
  g.cores = npu.family == NpuFamily::u85 ? npu.cores : 1;
  g.macs_per_cycle = npu.macs_per_cycle;
  return g;
}

std::vector<std::int16_t> random_values(Random& random, const std::array<int, 4>& ohwi) {
  std::vector<std::int16_t> values(static_cast<std::size_t>(ohwi[0]) *
                                   static_cast<std::size_t>(ohwi[1] * ohwi[2] * ohwi[3]));
  for (auto& value : values) value = static_cast<std::int16_t>(random.integer(-255, 255));
  return values;
}

TEST(BrickOrder, EmitsEachWeightOnceWhereBlocksHoldWholeUblocks) {
  for (const auto seed : testkit::seeds(150)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    auto ohwi = random_shape(random);
    if (random.chance(0.25)) ohwi[3] = 1;
    BrickGeometry g = random_geometry(random, ohwi);
    std::vector<int> count(random_values(random, ohwi).size());
    for (g.core = 0; g.core < g.cores; ++g.core) {
      for (const std::int32_t index : brick_indices(ohwi, g)) {
        if (index >= 0) ++count[static_cast<std::size_t>(index)];
      }
    }
    EXPECT_TRUE(std::ranges::all_of(count, [](int n) { return n == 1; }));
  }
}

TEST(BrickOrder, IndicesSayWhichWeightEachEntryIs) {
  for (const auto seed : testkit::seeds(60)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto ohwi = random_shape(random);
    BrickGeometry g = random_geometry(random, ohwi);
    g.core = static_cast<int>(random.integer(0, g.cores - 1));
    const auto values = random_values(random, ohwi);
    const auto order = brick_order(volume_from_ohwi(std::span(values), ohwi, 0), g);
    const auto indices = brick_indices(ohwi, g);
    ASSERT_EQ(order.size(), indices.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      ASSERT_EQ(order[k], indices[k] < 0 ? 0 : values[static_cast<std::size_t>(indices[k])]);
    }
  }
}

TEST(BrickOrder, FastOrderInterleavesAllCores) {
  for (const auto seed : testkit::seeds(60)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto ohwi = random_shape(random);
    BrickGeometry g = random_geometry(random, ohwi);
    if (g.family != NpuFamily::u85 || g.traversal == Traversal::depthwise) continue;
    const auto fast = fast_indices(ohwi, g);
    EXPECT_EQ(fast.size(), fast_ordered_count(ohwi, g));
    std::vector<std::int32_t> all;
    for (g.core = 0; g.core < g.cores; ++g.core) {
      const auto indices = brick_indices(ohwi, g);
      all.insert(all.end(), indices.begin(), indices.end());
    }
    auto sorted = fast;
    std::ranges::sort(sorted);
    std::ranges::sort(all);
    EXPECT_EQ(sorted, all);
    if (g.cores == 1) {
      g.core = 0;
      EXPECT_EQ(fast, brick_indices(ohwi, g));
    }
  }
}

TEST(BrickOrder, DoesNotDependOnHowTheWeightsLieInMemory) {
  for (const auto seed : testkit::seeds(40)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto ohwi = random_shape(random);
    const auto [n_o, n_h, n_w, n_i] = ohwi;
    const BrickGeometry g = random_geometry(random, ohwi);
    const auto ohwi_values = random_values(random, ohwi);
    std::vector<std::int16_t> hwio_values(ohwi_values.size());
    for (std::size_t k = 0; k < ohwi_values.size(); ++k) {
      const std::size_t per_channel = ohwi_values.size() / static_cast<std::size_t>(n_o);
      hwio_values[k % per_channel * static_cast<std::size_t>(n_o) + k / per_channel] = ohwi_values[k];
    }
    EXPECT_EQ(brick_order(volume_from_ohwi(std::span(std::as_const(ohwi_values)), ohwi, 0), g),
              brick_order(volume_from_hwio(std::span(std::as_const(hwio_values)), ohwi, 0), g));
  }
}

TEST(BrickOrder, SubtractsTheZeroPointFromWeightsButNotFromPadding) {
  const std::vector<std::uint8_t> values{0, 128, 255};
  BrickGeometry g;
  g.traversal = Traversal::depthwise;
  const auto order = brick_order(volume_from_hwio(std::span(values), {3, 1, 1, 1}, 128), g);
  ASSERT_EQ(order.size(), 32u);  // 8 lanes, kernel elements rounded up to 4
  EXPECT_EQ(std::vector(order.begin(), order.begin() + 4), (std::vector<std::int16_t>{-128, 0, 127, 0}));
}

TEST(BrickOrder, RefusesGeometriesThatMakeNoSense) {
  const std::array<int, 4> ohwi{8, 3, 3, 8};
  const auto refuses = [&](auto&& change) {
    BrickGeometry g;
    g.family = NpuFamily::u85;
    g.ifm_block_depth = 64;
    g.macs_per_cycle = 256;
    change(g);
    EXPECT_THROW(ordered_count(ohwi, g), Error);
    EXPECT_THROW(brick_indices(ohwi, g), Error);
  };
  refuses([](BrickGeometry& g) { g.ofm_block_depth = 0; });
  refuses([](BrickGeometry& g) { g.ofm_ublock_depth = 0; });
  refuses([](BrickGeometry& g) { g.ofm_ublock_depth = 6; });
  refuses([](BrickGeometry& g) { g.ifm_block_depth = 12; });
  refuses([](BrickGeometry& g) { g.ifm_block_depth = -8; });
  refuses([](BrickGeometry& g) { g.sub_kernel_height = 0; });
  refuses([](BrickGeometry& g) { g.sub_kernel_width = -1; });
  refuses([](BrickGeometry& g) { g.stride_x = 0; });
  refuses([](BrickGeometry& g) { g.stride_y = -3; });
  refuses([](BrickGeometry& g) { g.cores = 0; });
  refuses([](BrickGeometry& g) { g.core = 1; });
  refuses([](BrickGeometry& g) { g.family = NpuFamily::u55, g.ifm_ublock_depth = 0; });
}

TEST(BrickOrder, RefusesWhatNoHostCouldHold) {
  BrickGeometry g;
  g.ofm_ublock_depth = 1 << 30;
  g.ifm_ublock_depth = 1 << 30;
  EXPECT_THROW(ordered_count({1, 1, 1, 1}, g), Error);
  EXPECT_THROW(ordered_count({1 << 30, 1 << 30, 1 << 30, 1 << 30}, BrickGeometry{}), Error);
}

TEST(BrickOrder, RefusesTheFastOrderWhereTheHardwareHasNone) {
  BrickGeometry g;
  EXPECT_THROW(fast_ordered_count({8, 1, 1, 8}, g), Error);
  g.family = NpuFamily::u85;
  g.ifm_block_depth = 64;
  g.traversal = Traversal::depthwise;
  EXPECT_THROW(fast_ordered_count({8, 1, 1, 1}, g), Error);
}

}  // namespace
}  // namespace weightmill
