#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <weightmill/base/bits.h>
#include <weightmill/model/packed.h>
#include "order_emitter.h"

namespace weightmill {

/// What U85 derives from the geometry.  [docs/brick-order.md §3]
struct U85Blocks {
  explicit U85Blocks(const BrickGeometry& g) noexcept;

  /// Output channels that the cores are dealt at a time.
  static constexpr int kDealtChannels = 4;

  bool depthwise;
  int kernel_rounding;   ///< kernel elements are padded to a multiple of this
  int ifm_ublock_depth;  ///< input channels between two rounds of the kernel
  int row;               ///< input channels of one output channel that follow each other
  int stride_y, stride_x;
  int depthwise_padding;  ///< elements of padding after each full round of a depthwise kernel

  std::int64_t padded_elements(const SubKernel& sub) const noexcept {
    return ceil_to(static_cast<unsigned>(sub.height * sub.width), static_cast<unsigned>(kernel_rounding));
  }
  /// Entries of `n` padded kernel elements in one core's stream.
  std::int64_t padding_of(std::int64_t n, const BrickGeometry& g) const noexcept {
    return n * ifm_ublock_depth * g.ofm_ublock_depth / g.cores;
  }
};

/// Walks a volume in U85's order, for one core.
template <class Source>
class U85Order {
 public:
  U85Order(OrderEmitter<Source>& out, const std::array<int, 4>& ohwi, const BrickGeometry& geometry) noexcept
      : out_(out),
        ohwi_(ohwi),
        g_(geometry),
        blocks_(geometry),
        stride_y_(
            std::min(blocks_.stride_y, ohwi[1])),  // a stride beyond the kernel orders it like the kernel's extent
        stride_x_(std::min(blocks_.stride_x, ohwi[2])) {}

  void walk() noexcept {
    bool forwards = true;
    for (int o = 0; o < ohwi_[0]; o += std::min(g_.ofm_block_depth, ohwi_[0] - o), forwards = !forwards) {
      walk_ifm_blocks(o, std::min(g_.ofm_block_depth, ohwi_[0] - o), forwards);
    }
  }

 private:
  void walk_ifm_blocks(int o, int ofm_depth, bool forwards) noexcept {
    const int depth = blocks_.depthwise ? 1 : ohwi_[3];
    const int n = (depth - 1) / g_.ifm_block_depth + 1;
    for (int k = 0; k < n; ++k) walk_sub_kernels(o, ofm_depth, (forwards ? k : n - 1 - k) * g_.ifm_block_depth);
  }

  void walk_sub_kernels(int o, int ofm_depth, int i) noexcept {
    for (int x = 0; x < ohwi_[2]; x += g_.sub_kernel_width) {
      for (int y = 0; y < ohwi_[1]; y += g_.sub_kernel_height) {
        const SubKernel sub{y, x, std::min(g_.sub_kernel_height, ohwi_[1] - y),
                            std::min(g_.sub_kernel_width, ohwi_[2] - x)};
        const int end = blocks_.depthwise ? i + 1 : i + std::min(g_.ifm_block_depth, ohwi_[3] - i);
        for (int a = i; a < end; a += std::min(blocks_.ifm_ublock_depth, end - a))
          walk_ofm_ublocks(o, ofm_depth, a, sub);
      }
    }
  }

  void walk_ofm_ublocks(int o, int ofm_depth, int i, const SubKernel& sub) noexcept {
    for (int u = 0; u < ofm_depth; u += g_.ofm_ublock_depth) {
      n_left_ = blocks_.padded_elements(sub);
      for (int py = 0; py < stride_y_; ++py) {
        for (int px = 0; px < stride_x_; ++px) walk_phase(o + u, i, sub, py, px);
      }
      const std::int64_t tail = blocks_.depthwise ? blocks_.depthwise_padding : 0;
      if (n_left_ > 0) out_.padding(blocks_.padding_of(n_left_ + tail, g_));
    }
  }

  /// The kernel elements that meet the same input element of a stride, in serpentine order.
  void walk_phase(int o, int i, const SubKernel& sub, int py, int px) noexcept {
    const int height = (sub.height + stride_y_ - 1 - py) / stride_y_;
    const int width = (sub.width + stride_x_ - 1 - px) / stride_x_;
    for (int ky = 0; ky < height; ++ky) {
      for (int k = 0; k < width; ++k) {
        const int kx = ky % 2 == 0 ? k : width - 1 - k;
        emit_element(o, sub.y0 + py + ky * stride_y_, sub.x0 + px + kx * stride_x_, i);
      }
    }
  }

  void emit_element(int o, int y, int x, int i) noexcept {
    for (int b = 0; b < blocks_.ifm_ublock_depth; b += blocks_.row) emit_dealt_channels(o, y, x, i + b);
    --n_left_;
    if (blocks_.depthwise && n_left_ % blocks_.kernel_rounding == 0) {
      out_.padding(blocks_.padding_of(blocks_.depthwise_padding, g_));
    }
  }

  void emit_dealt_channels(int o, int y, int x, int i) noexcept {
    constexpr int kDealt = U85Blocks::kDealtChannels;
    for (int oz = kDealt * g_.core; oz < g_.ofm_ublock_depth; oz += kDealt * g_.cores) {
      if (blocks_.depthwise) {
        out_.column(o + oz, kDealt, y, x);
      } else {
        out_.rows(o + oz, kDealt, y, x, i, blocks_.row);
      }
    }
  }

  OrderEmitter<Source>& out_;
  std::array<int, 4> ohwi_;
  BrickGeometry g_;
  U85Blocks blocks_;
  int stride_y_, stride_x_;
  std::int64_t n_left_ = 0;
};

}  // namespace weightmill
