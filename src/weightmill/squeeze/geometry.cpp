#include "geometry.h"

#include <algorithm>

#include <weightmill/base/bits.h>

namespace weightmill {
namespace {

constexpr std::uint64_t kSubKernel = 8;  // weights are ordered in sub-kernels of at most 8 x 8 dilated elements

/// A convolution as its registers describe it.
struct Geometry {
  std::uint64_t ofm_depth, ofm_block_depth, ifm_depth;
  std::uint64_t kernel_width, kernel_height;  ///< elements
  std::uint64_t sub_width, sub_height;        ///< of the largest sub-kernel, elements
  bool is_depthwise, is_part_kernel, has_16_bit_ifm;
};

Geometry geometry_of(const Registers& registers, Opcode opcode) {
  const std::uint64_t stride = registers[reg::kKernelStride];
  const std::uint64_t dilation_x = (stride >> 3 & 1) + 1, dilation_y = (stride >> 4 & 1) + 1;
  return {.ofm_depth = registers[reg::kOfmDepthM1] + 1,
          .ofm_block_depth = registers[reg::kOfmBlockDepthM1] + 1,
          .ifm_depth = registers[reg::kIfmDepthM1] + 1,
          .kernel_width = registers[reg::kKernelWidthM1] / dilation_x + 1,
          .kernel_height = registers[reg::kKernelHeightM1] / dilation_y + 1,
          .sub_width = kSubKernel / dilation_x,
          .sub_height = kSubKernel / dilation_y,
          .is_depthwise = opcode == Opcode::depthwise,
          .is_part_kernel = (stride >> 2 & 1) != 0,
          .has_16_bit_ifm = (registers[reg::kIfmPrecision] >> 2 & 3) == 1};
}

/// Kernel elements, each sub-kernel's rounded up to `rounding`.
std::uint64_t padded_kernel_elements(const Geometry& g, std::uint64_t rounding) {
  const std::uint64_t columns = g.kernel_width / g.sub_width, last_width = g.kernel_width % g.sub_width;
  const auto row_of = [&](std::uint64_t height) {  // sub-kernels side by side, all of this height
    return columns * ceil_to(height * g.sub_width, rounding) + ceil_to(height * last_width, rounding);
  };
  return g.kernel_height / g.sub_height * row_of(g.sub_height) + row_of(g.kernel_height % g.sub_height);
}

/// Input channels, each block's padded to what the stream holds of it.
std::uint64_t padded_ifm_depth(const Geometry& g) {
  constexpr std::uint64_t kMicroBlock = 8;
  if (g.is_depthwise) return 1;
  const std::uint64_t block = g.is_part_kernel || g.has_16_bit_ifm ? 16 : 32;
  return g.is_part_kernel ? ceil_to(g.ifm_depth, kMicroBlock) : ceil_to(g.ifm_depth, block);
}

/// Output channels of one core, each block's rounded up to the micro-block.
std::uint64_t padded_ofm_depth(const Geometry& g, std::uint64_t micro_block, std::uint64_t n_cores, unsigned core) {
  const auto share = [&](std::uint64_t depth) { return (depth + n_cores - 1 - core) / n_cores; };
  const std::uint64_t depth = share(g.ofm_depth), block = share(g.ofm_block_depth);
  if (block == 0) return 0;
  return depth / block * ceil_to(block, micro_block) + ceil_to(depth % block, micro_block);
}

std::uint64_t kernel_rounding(const Geometry& g) {
  if (g.is_depthwise) return 4;
  if (!g.is_part_kernel) return 1;
  return g.has_16_bit_ifm ? 2 : 4;
}

WeightCount u85_bound(const Payload& payload, const Registers& registers, const Geometry& g) {
  const bool is_fast = (registers[reg::kWeightFormat] & 1) != 0;  // that format has one stream for all decoders
  const std::uint64_t inputs = g.is_depthwise ? 1 : g.ifm_depth;
  const std::uint64_t all = saturating_multiply(g.ofm_depth * inputs, g.kernel_width * g.kernel_height);
  return {all / (is_fast ? 1 : payload.n_decoders()), false};
}

}  // namespace

WeightCount expected_weights(const Payload& payload, const Registers& registers, Opcode opcode, unsigned core) {
  constexpr unsigned kLog2MacsOfSmallest = 5;  // U55-32, the only one with micro-blocks 4 deep
  const Geometry g = geometry_of(registers, opcode);
  if (payload.product() == Product::u85) return u85_bound(payload, registers, g);
  const std::uint64_t micro_block = payload.log2_macs() == kLog2MacsOfSmallest ? 4 : 8;
  const std::uint64_t channels =
      padded_ofm_depth(g, micro_block, n_cores(payload, registers), core) * padded_ifm_depth(g);
  return {saturating_multiply(channels, padded_kernel_elements(g, kernel_rounding(g))), true};
}

}  // namespace weightmill
