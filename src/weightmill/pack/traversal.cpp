#include "traversal.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <weightmill/base/bits.h>

namespace weightmill {
namespace {

double padded_share(int extent, unsigned unit) {
  const auto n = static_cast<unsigned>(extent);
  return static_cast<double>(n) / static_cast<double>(ceil_to(n, unit));
}

double kernel_elements(const std::array<int, 4>& ohwi) { return static_cast<double>(ohwi[1]) * ohwi[2]; }

/// Elements of the ofm, and how many more its blocks cover.
std::int64_t padding_waste(BlockShape ofm, BlockShape ublock) {
  const auto covered = [](int extent, int unit) {
    return std::int64_t{ceil_div(static_cast<unsigned>(std::max(extent, 1)), static_cast<unsigned>(unit))} * unit;
  };
  const std::int64_t volume = std::int64_t{std::max(ofm.width, 1)} * std::max(ofm.height, 1) * std::max(ofm.depth, 1);
  return covered(ofm.width, ublock.width) * covered(ofm.height, ublock.height) * covered(ofm.depth, ublock.depth) -
         volume;
}

/// Which ofm ublocks U85 allows for an operator.  [docs/brick-order.md §4]
bool allows(const Accelerator& npu, BlockShape ublock, bool depthwise, bool point_depth_first, bool b16) {
  const bool flat_deep = ublock.depth == 16 && ublock.height == 1 && ublock.width <= 2;
  switch (npu.macs_per_cycle) {
    case 128:
    case 256:
      return flat_deep ? (depthwise ? !b16 : b16 && point_depth_first) : !depthwise || b16;
    case 512:
      return true;
    default:
      return !depthwise || ublock.depth == 16;
  }
}

}  // namespace

Traversal choose_traversal(NpuBlockType type, const std::array<int, 4>& ohwi, int ifm_bits) {
  if (type == NpuBlockType::depthwise) return Traversal::depthwise;
  if (type == NpuBlockType::vector_product) return Traversal::depth_first;
  if (ohwi[3] <= 8) return Traversal::part_kernel_first;
  const double k = kernel_elements(ohwi);
  const double unit = ifm_bits == 8 ? 4 : 2;
  const double k_rounded = std::ceil(k / unit) * unit;
  const double part_kernel = padded_share(ohwi[3], 8) * (k / k_rounded);
  const double depth_first = padded_share(ohwi[3], ifm_bits == 8 ? 32 : 16);
  return part_kernel >= depth_first ? Traversal::part_kernel_first : Traversal::depth_first;
}

Traversal choose_traversal_u85(NpuBlockType type, const std::array<int, 4>& ohwi, bool sparse) {
  if (type == NpuBlockType::depthwise) return Traversal::depthwise;
  if (type == NpuBlockType::vector_product) return Traversal::depth_first;
  const double k = kernel_elements(ohwi);
  const double s = sparse ? 10 : 5, r = sparse ? 4 : 2;
  const double whole = std::floor(k / s) * s;
  const double k_rounded = whole + std::max(k - whole, r);
  const double part_kernel = padded_share(ohwi[3], 16) * (k / k_rounded);
  const double depth_first = padded_share(ohwi[3], sparse ? 128 : 64);
  return part_kernel >= depth_first ? Traversal::part_kernel_first : Traversal::depth_first;
}

BlockShape choose_ofm_ublock(const Accelerator& accelerator, Traversal traversal, const std::array<int, 4>& ohwi,
                             int ifm_bits, BlockShape ofm) {
  const bool depthwise = traversal == Traversal::depthwise;
  const bool point_depth_first = traversal == Traversal::depth_first && ohwi[1] == 1 && ohwi[2] == 1;
  BlockShape best = accelerator.ofm_ublocks.front();
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const BlockShape& ublock : accelerator.ofm_ublocks) {
    if (!allows(accelerator, ublock, depthwise, point_depth_first, ifm_bits == 16)) continue;
    const std::int64_t waste = padding_waste(ofm, ublock);
    if (waste < least) {
      least = waste;
      best = ublock;
    }
  }
  return best;
}

int choose_ifm_block_depth(const Accelerator& accelerator, Traversal traversal, int ofm_ublock_depth, int ifm_bits,
                           bool sparse) {
  if (traversal == Traversal::part_kernel_first) return 16;
  if (sparse && ifm_bits == 8) return 128;
  const bool narrow = accelerator.macs_per_cycle <= 256 && ofm_ublock_depth == 16 && !sparse;
  return ifm_bits == 32 || narrow ? 32 : 64;
}

}  // namespace weightmill
