#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <weightmill/base/bits.h>
#include <weightmill/model/packed.h>
#include "order_emitter.h"

namespace weightmill {

/// What U55 and U65 derive from the geometry.  [docs/brick-order.md §2]
struct U55Blocks {
  explicit U55Blocks(const BrickGeometry& g) noexcept
      : depthwise(g.traversal == Traversal::depthwise),
        part_kernel(g.traversal == Traversal::part_kernel_first),
        ifm_block_depth(part_kernel || g.ifm_bits == 16 ? 16 : 32),
        kernel_rounding(rounding_of(g)) {}

  bool depthwise;
  bool part_kernel;
  int ifm_block_depth;
  unsigned kernel_rounding;  ///< kernel elements are padded to a multiple of this

  static unsigned rounding_of(const BrickGeometry& g) noexcept {
    if (g.traversal == Traversal::depthwise) return 4;
    if (g.traversal == Traversal::depth_first) return 1;
    return g.ifm_bits == 16 ? 2 : g.ifm_bits == 8 ? 4 : 1;
  }
  std::int64_t padded_elements(const SubKernel& sub) const noexcept {
    return ceil_to(static_cast<unsigned>(sub.height * sub.width), kernel_rounding);
  }
};

/// Walks a volume in U55's and U65's order.
template <class Source>
class U55Order {
 public:
  U55Order(OrderEmitter<Source>& out, const std::array<int, 4>& ohwi, const BrickGeometry& geometry) noexcept
      : out_(out), ohwi_(ohwi), g_(geometry), blocks_(geometry) {}

  void walk() noexcept {
    for (int o = 0; o < ohwi_[0]; o += std::min(g_.ofm_block_depth, ohwi_[0] - o)) {
      const int ofm_depth = std::min(g_.ofm_block_depth, ohwi_[0] - o);
      const int ifm_depth = blocks_.depthwise ? 1 : ohwi_[3];
      for (int i = 0; i < ifm_depth; i += blocks_.ifm_block_depth) walk_sub_kernels(o, ofm_depth, i);
    }
  }

 private:
  void walk_sub_kernels(int o, int ofm_depth, int i) noexcept {
    for (int y = 0; y < ohwi_[1]; y += g_.sub_kernel_height) {
      for (int x = 0; x < ohwi_[2]; x += g_.sub_kernel_width) {
        walk_ifm_block(
            o, ofm_depth, i,
            {y, x, std::min(g_.sub_kernel_height, ohwi_[1] - y), std::min(g_.sub_kernel_width, ohwi_[2] - x)});
      }
    }
  }

  void walk_ifm_block(int o, int ofm_depth, int i, const SubKernel& sub) noexcept {
    if (blocks_.depthwise) return walk_ofm_ublocks(o, ofm_depth, i, 1, sub);
    if (!blocks_.part_kernel) return walk_ofm_ublocks(o, ofm_depth, i, blocks_.ifm_block_depth, sub);
    const int end = i + std::min(blocks_.ifm_block_depth, ohwi_[3] - i);
    for (; i < end; i += g_.ifm_ublock_depth) walk_ofm_ublocks(o, ofm_depth, i, g_.ifm_ublock_depth, sub);
  }

  void walk_ofm_ublocks(int o, int ofm_depth, int i, int ifm_depth, const SubKernel& sub) noexcept {
    const int n_elements = sub.height * sub.width;
    for (int u = 0; u < ofm_depth; u += g_.ofm_ublock_depth) {
      for (int y = sub.y0; y < sub.y0 + sub.height; ++y) {
        for (int x = sub.x0; x < sub.x0 + sub.width; ++x) emit_element(o + u, y, x, i, ifm_depth);
      }
      out_.padding((blocks_.padded_elements(sub) - n_elements) * element_size(ifm_depth));
    }
  }

  void emit_element(int o, int y, int x, int i, int ifm_depth) noexcept {
    if (blocks_.depthwise) return out_.column(o, g_.ofm_ublock_depth, y, x);
    for (int b = 0; b < ifm_depth; b += g_.ifm_ublock_depth) {
      out_.rows(o, g_.ofm_ublock_depth, y, x, i + b, g_.ifm_ublock_depth);
    }
  }

  std::int64_t element_size(int ifm_depth) const noexcept {
    if (blocks_.depthwise) return g_.ofm_ublock_depth;
    const auto ublock = static_cast<unsigned>(g_.ifm_ublock_depth);
    return std::int64_t{ceil_to(static_cast<unsigned>(ifm_depth), ublock)} * g_.ofm_ublock_depth;
  }

  OrderEmitter<Source>& out_;
  std::array<int, 4> ohwi_;
  BrickGeometry g_;
  U55Blocks blocks_;
};

}  // namespace weightmill
