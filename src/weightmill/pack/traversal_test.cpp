#include "traversal.h"

#include <gtest/gtest.h>

#include "accelerator.h"

namespace weightmill {
namespace {

constexpr auto kConv = NpuBlockType::convolution;

TEST(Traversal, PartKernelWhereItKeepsMoreMultipliersBusy) {
  EXPECT_EQ(choose_traversal(kConv, {16, 3, 3, 3}, 8), Traversal::part_kernel_first);    // few input channels
  EXPECT_EQ(choose_traversal(kConv, {16, 1, 1, 64}, 8), Traversal::depth_first);         // 1/4 against 1
  EXPECT_EQ(choose_traversal(kConv, {16, 2, 2, 32}, 8), Traversal::part_kernel_first);   // 1 against 1
  EXPECT_EQ(choose_traversal(kConv, {16, 3, 3, 32}, 8), Traversal::depth_first);         // 9/12 against 1
  EXPECT_EQ(choose_traversal(kConv, {16, 3, 3, 40}, 8), Traversal::part_kernel_first);   // 9/12 against 40/64
  EXPECT_EQ(choose_traversal(kConv, {16, 1, 1, 24}, 16), Traversal::depth_first);        // 1/2 against 24/32
  EXPECT_EQ(choose_traversal(kConv, {16, 3, 3, 24}, 16), Traversal::part_kernel_first);  // 9/10 against 24/32
}

TEST(Traversal, TheOperatorSettlesTheOthers) {
  EXPECT_EQ(choose_traversal(NpuBlockType::depthwise, {16, 3, 3, 1}, 8), Traversal::depthwise);
  EXPECT_EQ(choose_traversal(NpuBlockType::vector_product, {16, 1, 1, 4}, 8), Traversal::depth_first);
  EXPECT_EQ(choose_traversal_u85(NpuBlockType::depthwise, {16, 3, 3, 1}, false), Traversal::depthwise);
  EXPECT_EQ(choose_traversal_u85(NpuBlockType::vector_product, {16, 1, 1, 4}, false), Traversal::depth_first);
}

TEST(Traversal, U85CountsInFivesAndTens) {
  EXPECT_EQ(choose_traversal_u85(kConv, {16, 3, 3, 16}, false), Traversal::part_kernel_first);  // 1 against 1/4
  EXPECT_EQ(choose_traversal_u85(kConv, {16, 1, 1, 64}, false), Traversal::depth_first);        // 1/2 against 1
  EXPECT_EQ(choose_traversal_u85(kConv, {16, 3, 3, 64}, false),
            Traversal::part_kernel_first);                                                // 9 = 5 + 4: 1 against 1
  EXPECT_EQ(choose_traversal_u85(kConv, {16, 1, 1, 128}, true), Traversal::depth_first);  // 1/4 against 1
}

BlockShape chosen(const char* npu, Traversal traversal, std::array<int, 4> ohwi, int bits, BlockShape ofm) {
  return choose_ofm_ublock(find_accelerator(npu), traversal, ohwi, bits, ofm);
}

TEST(OfmUblock, DependsOnOperatorAndPrecision) {
  const BlockShape ofm{8, 8, 32};
  EXPECT_EQ(chosen("ethos-u85-128", Traversal::depth_first, {32, 3, 3, 8}, 8, ofm), (BlockShape{2, 1, 8}));
  EXPECT_EQ(chosen("ethos-u85-128", Traversal::depthwise, {32, 3, 3, 1}, 8, ofm), (BlockShape{1, 1, 16}));
  EXPECT_EQ(chosen("ethos-u85-128", Traversal::depthwise, {32, 3, 3, 1}, 16, ofm), (BlockShape{2, 1, 8}));
  EXPECT_EQ(chosen("ethos-u85-256", Traversal::depthwise, {32, 3, 3, 1}, 8, ofm), (BlockShape{2, 1, 16}));
  EXPECT_EQ(chosen("ethos-u85-256", Traversal::depth_first, {32, 1, 1, 8}, 16, ofm), (BlockShape{2, 1, 16}));
  EXPECT_EQ(chosen("ethos-u85-1024", Traversal::depthwise, {32, 3, 3, 1}, 8, ofm), (BlockShape{4, 2, 16}));
  EXPECT_EQ(chosen("ethos-u85-2048", Traversal::depthwise, {32, 3, 3, 1}, 16, ofm), (BlockShape{4, 4, 16}));
}

TEST(OfmUblock, IsTheFirstThatPadsTheOutputLeast) {
  EXPECT_EQ(chosen("ethos-u85-256", Traversal::part_kernel_first, {8, 3, 3, 8}, 8, {4, 1, 8}), (BlockShape{4, 1, 8}));
  EXPECT_EQ(chosen("ethos-u85-256", Traversal::part_kernel_first, {8, 3, 3, 8}, 8, {2, 2, 8}), (BlockShape{2, 2, 8}));
  EXPECT_EQ(chosen("ethos-u85-512", Traversal::depth_first, {8, 1, 1, 8}, 8, {0, 0, 0}), (BlockShape{2, 2, 16}));
}

TEST(IfmBlockDepth, FollowsTraversalPrecisionAndSparsity) {
  const auto depth = [](const char* npu, Traversal t, int ublock, int bits, bool sparse) {
    return choose_ifm_block_depth(find_accelerator(npu), t, ublock, bits, sparse);
  };
  EXPECT_EQ(depth("ethos-u85-512", Traversal::part_kernel_first, 16, 8, false), 16);
  EXPECT_EQ(depth("ethos-u85-512", Traversal::depth_first, 16, 8, false), 64);
  EXPECT_EQ(depth("ethos-u85-256", Traversal::depth_first, 16, 8, false), 32);
  EXPECT_EQ(depth("ethos-u85-256", Traversal::depth_first, 8, 8, false), 64);
  EXPECT_EQ(depth("ethos-u85-256", Traversal::depth_first, 16, 8, true), 128);
  EXPECT_EQ(depth("ethos-u85-256", Traversal::depth_first, 16, 16, true), 64);
  EXPECT_EQ(depth("ethos-u85-2048", Traversal::depth_first, 64, 32, false), 32);
}

}  // namespace
}  // namespace weightmill
