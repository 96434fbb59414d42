#include "order_walk.h"

#include <algorithm>

namespace weightmill::verify {
namespace {

int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

/// Collects positions; whatever lies outside the volume is padding.
class Positions {
 public:
  explicit Positions(const std::array<int, 4>& ohwi) : ohwi_(ohwi) {}
  void take(int o, int y, int x, int i) {
    const bool inside = o < ohwi_[0] && y < ohwi_[1] && x < ohwi_[2] && i < ohwi_[3];
    const std::int64_t row = (static_cast<std::int64_t>(o) * ohwi_[1] + y) * ohwi_[2] + x;
    list_.push_back(inside ? row * ohwi_[3] + i : kPadding);
  }
  void pad(std::int64_t count) { list_.insert(list_.end(), static_cast<std::size_t>(count), kPadding); }
  std::vector<std::int64_t> release() { return std::move(list_); }

 private:
  std::array<int, 4> ohwi_;
  std::vector<std::int64_t> list_;
};

/// A rectangle of kernel elements that the NPU takes as one kernel.
struct SubKernel {
  int y0, x0, height, width;
};

// ---- U55 and U65 --------------------------------------------------------------------------------------------------

/// To what multiple the number of kernel elements is padded.
int kernel_rounding_u55(const BrickGeometry& g) {
  if (g.traversal == Traversal::depthwise) return 4;
  if (g.traversal != Traversal::part_kernel_first) return 1;
  return g.ifm_bits == 16 ? 2 : g.ifm_bits == 8 ? 4 : 1;
}

/// The weights of one ublock of output channels, `o`, for one kernel element and input channels [i, i + ublock).
void walk_ublock_u55(const BrickGeometry& g, int o, int y, int x, int i, Positions& positions) {
  const int n_inputs = g.traversal == Traversal::depthwise ? 1 : g.ifm_ublock_depth;
  for (int oz = 0; oz < g.ofm_ublock_depth; ++oz) {
    for (int iz = 0; iz < n_inputs; ++iz) positions.take(o + oz, y, x, i + iz);
  }
}

/// All kernel elements of one sub-kernel for output channels [o0, o0 + n_outputs), input channels [i0, i0 + n_inputs).
void walk_elements_u55(const BrickGeometry& g, int o0, int n_outputs, int i0, int n_inputs, const SubKernel& kernel,
                       int height, Positions& positions) {
  const bool part_kernel = g.traversal == Traversal::part_kernel_first;
  const int n_elements = round_up(kernel.height * kernel.width, kernel_rounding_u55(g));
  for (int a = 0; a < (part_kernel ? n_inputs : 1); a += g.ifm_ublock_depth) {
    for (int u = 0; u < n_outputs; u += g.ofm_ublock_depth) {
      for (int e = 0; e < n_elements; ++e) {
        const int ky = e / kernel.width;
        const int y = ky < kernel.height ? kernel.y0 + ky : height;  // past the sub-kernel: padding
        const int x = kernel.x0 + e % kernel.width;
        for (int b = 0; b < (part_kernel ? 1 : n_inputs); b += g.ifm_ublock_depth) {
          walk_ublock_u55(g, o0 + u, y, x, i0 + a + b, positions);
        }
      }
    }
  }
}

void walk_u55(const BrickGeometry& g, const std::array<int, 4>& ohwi, Positions& positions) {
  const auto [n_o, n_y, n_x, n_i] = ohwi;
  const bool depthwise = g.traversal == Traversal::depthwise;
  const bool part_kernel = g.traversal == Traversal::part_kernel_first;
  const int ifm_block = part_kernel || g.ifm_bits == 16 ? 16 : 32;
  for (int o0 = 0; o0 < n_o; o0 += g.ofm_block_depth) {
    const int n_outputs = std::min(g.ofm_block_depth, n_o - o0);
    for (int i0 = 0; i0 < (depthwise ? 1 : n_i); i0 += ifm_block) {
      const int n_inputs = depthwise ? g.ifm_ublock_depth : part_kernel ? std::min(ifm_block, n_i - i0) : ifm_block;
      for (int y0 = 0; y0 < n_y; y0 += g.sub_kernel_height) {
        for (int x0 = 0; x0 < n_x; x0 += g.sub_kernel_width) {
          const SubKernel kernel{y0, x0, std::min(g.sub_kernel_height, n_y - y0),
                                 std::min(g.sub_kernel_width, n_x - x0)};
          walk_elements_u55(g, o0, n_outputs, i0, n_inputs, kernel, n_y, positions);
        }
      }
    }
  }
}

// ---- U85 ----------------------------------------------------------------------------------------------------------

/// The numbers that follow from a U85 geometry before the loops start.
struct U85 {
  explicit U85(const BrickGeometry& g)
      : depthwise(g.traversal == Traversal::depthwise),
        depth_first(g.traversal == Traversal::depth_first),
        stride_y(depth_first ? 1 : g.stride_y),
        stride_x(depth_first ? 1 : g.stride_x) {
    const bool wide = g.ifm_bits == 16;
    if (g.traversal == Traversal::part_kernel_first) {
      rounding = wide || g.sparse ? 10 : 5;
      ifm_unit = wide && !g.sparse ? 8 : g.ifm_block_depth;
    } else {
      rounding = depth_first ? 1 : 10;
      ifm_unit = depth_first ? g.ifm_block_depth : 1;
    }
    step = depthwise ? 1 : g.sparse ? 16 : 8;
    if (depthwise) pad_count = !wide && g.macs_per_cycle <= 256 ? 0 : g.macs_per_cycle <= 512 ? 2 : 6;
  }
  bool depthwise, depth_first;
  int stride_y, stride_x;
  int rounding = 1;   ///< kernel elements are padded to a multiple of this
  int ifm_unit = 1;   ///< input channels taken for one pass over the kernel
  int step = 8;       ///< input channels side by side
  int pad_count = 0;  ///< depthwise: elements of padding after each `rounding` elements
};

/// One kernel element, all channels of the ublock that core `core` has.
void walk_element_u85(const BrickGeometry& g, const U85& u, int core, int o, int y, int x, int i,
                      Positions& positions) {
  for (int b = 0; b < u.ifm_unit; b += u.step) {
    for (int oz = 4 * core; oz < g.ofm_ublock_depth; oz += 4 * g.cores) {
      for (int oi = 0; oi < 4; ++oi) {
        for (int iz = 0; iz < u.step; ++iz) positions.take(o + oz + oi, y, x, i + b + iz);
      }
    }
  }
}

/// One sub-kernel for one ublock of output channels and one unit of input channels, then its padding.
void walk_kernel_u85(const BrickGeometry& g, const U85& u, int core, int o, int i, const SubKernel& kernel,
                     Positions& positions) {
  int n_left = round_up(kernel.width * kernel.height, u.rounding);
  for (int py = 0; py < u.stride_y; ++py) {
    const int n_rows = (kernel.height + u.stride_y - 1 - py) / u.stride_y;
    for (int px = 0; px < u.stride_x; ++px) {
      const int n_columns = (kernel.width + u.stride_x - 1 - px) / u.stride_x;
      for (int ky = 0; ky < n_rows; ++ky) {
        for (int k = 0; k < n_columns; ++k) {
          const int kx = ky % 2 == 0 ? k : n_columns - 1 - k;
          --n_left;
          walk_element_u85(g, u, core, o, kernel.y0 + py + ky * u.stride_y, kernel.x0 + px + kx * u.stride_x, i,
                           positions);
          if (u.depthwise && n_left % u.rounding == 0) {
            positions.pad(static_cast<std::int64_t>(u.pad_count) * g.ofm_ublock_depth / g.cores);
          }
        }
      }
    }
  }
  if (n_left > 0) {
    positions.pad(static_cast<std::int64_t>(n_left + u.pad_count) * u.ifm_unit * g.ofm_ublock_depth / g.cores);
  }
}

/// One block of output channels against one block of input channels.
void walk_block_u85(const BrickGeometry& g, const U85& u, int core, const std::array<int, 4>& ohwi, int o0, int i0,
                    Positions& positions) {
  const auto [n_o, n_y, n_x, n_i] = ohwi;
  const int n_outputs = std::min(g.ofm_block_depth, n_o - o0);
  const int n_inputs = u.depthwise ? 1 : std::min(g.ifm_block_depth, n_i - i0);
  for (int x0 = 0; x0 < n_x; x0 += g.sub_kernel_width) {
    for (int y0 = 0; y0 < n_y; y0 += g.sub_kernel_height) {
      const SubKernel kernel{y0, x0, std::min(g.sub_kernel_height, n_y - y0), std::min(g.sub_kernel_width, n_x - x0)};
      for (int a = 0; a < n_inputs; a += u.ifm_unit) {
        for (int o = 0; o < n_outputs; o += g.ofm_ublock_depth) {
          walk_kernel_u85(g, u, core, o0 + o, i0 + a, kernel, positions);
        }
      }
    }
  }
}

/// Blocks of input channels run up and down in turn, so that the block at the turn is still there.
std::vector<std::int64_t> walk_u85(const BrickGeometry& g, int core, const std::array<int, 4>& ohwi) {
  const U85 u(g);
  Positions positions(ohwi);
  const int n_blocks = u.depthwise ? 1 : (ohwi[3] + g.ifm_block_depth - 1) / g.ifm_block_depth;
  int ordinal = 0;
  for (int o0 = 0; o0 < ohwi[0]; o0 += g.ofm_block_depth, ++ordinal) {
    for (int block = 0; block < n_blocks; ++block) {
      const int i_block = ordinal % 2 == 0 ? block : n_blocks - 1 - block;
      walk_block_u85(g, u, core, ohwi, o0, i_block * g.ifm_block_depth, positions);
    }
  }
  return positions.release();
}

/// A fast stream: the cores' streams dealt out in turn, so many weights at a time.
std::vector<std::int64_t> walk_u85_interleaved(const BrickGeometry& g, const std::array<int, 4>& ohwi) {
  std::vector<std::vector<std::int64_t>> streams;
  for (int core = 0; core < g.cores; ++core) streams.push_back(walk_u85(g, core, ohwi));
  const U85 u(g);
  const std::size_t deal = static_cast<std::size_t>(g.ofm_ublock_depth) * static_cast<std::size_t>(u.ifm_unit) *
                           static_cast<std::size_t>(u.rounding) / static_cast<std::size_t>(g.cores);
  std::vector<std::int64_t> dealt;
  for (std::size_t at = 0; at < streams.front().size(); at += deal) {
    for (const auto& stream : streams) {
      const std::size_t end = std::min(stream.size(), at + deal);
      if (at < end)
        dealt.insert(dealt.end(), stream.begin() + static_cast<std::ptrdiff_t>(at),
                     stream.begin() + static_cast<std::ptrdiff_t>(end));
    }
  }
  return dealt;
}

}  // namespace

std::vector<std::int64_t> walk_order(const BrickGeometry& geometry, StreamFormat format,
                                     const std::array<int, 4>& ohwi) {
  if (geometry.family == NpuFamily::u85) {
    const bool fast = format == StreamFormat::fast || format == StreamFormat::fast_sparse;
    return fast && geometry.cores > 1 ? walk_u85_interleaved(geometry, ohwi) : walk_u85(geometry, geometry.core, ohwi);
  }
  Positions positions(ohwi);
  walk_u55(geometry, ohwi, positions);
  return positions.release();
}

std::string geometry_problem(const BrickGeometry& g, const std::array<int, 4>& ohwi) {
  const auto in_range = [](int value, int low, int high) { return low <= value && value <= high; };
  constexpr int kMost = 1 << 16;  // far above any NPU, and products of a few of them still fit 64 bits
  if (std::any_of(ohwi.begin(), ohwi.end(), [](int extent) { return extent < 0; })) return "a negative extent";
  if (!in_range(g.ofm_block_depth, 1, kMost)) return "ofm_block_depth is " + std::to_string(g.ofm_block_depth);
  if (!in_range(g.ofm_ublock_depth, 1, kMost)) return "ofm_ublock_depth is " + std::to_string(g.ofm_ublock_depth);
  if (!in_range(g.sub_kernel_height, 1, 8) || !in_range(g.sub_kernel_width, 1, 8)) return "a sub-kernel outside 1..8";
  if (g.family != NpuFamily::u85) {
    return in_range(g.ifm_ublock_depth, 1, kMost) ? "" : "ifm_ublock_depth is " + std::to_string(g.ifm_ublock_depth);
  }
  if (!in_range(g.ifm_block_depth, 1, kMost)) return "ifm_block_depth is " + std::to_string(g.ifm_block_depth);
  if (!in_range(g.cores, 1, 16) || !in_range(g.core, 0, g.cores - 1))
    return "core " + std::to_string(g.core) + " of " + std::to_string(g.cores);
  if (g.ofm_ublock_depth % (4 * g.cores) != 0) return "an ofm ublock that does not divide over the cores";
  if (!in_range(g.stride_y, 1, 8) || !in_range(g.stride_x, 1, 8)) return "a stride outside 1..8";
  return "";
}

}  // namespace weightmill::verify
