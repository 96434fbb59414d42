#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weightmill {

enum class NpuFamily : std::uint8_t { u55, u65, u85 };

/// "u55", "u65", "u85".
std::string_view name_of(NpuFamily family) noexcept;

/// Extents of a block of a feature map, in elements.
struct BlockShape {
  int width = 0;
  int height = 0;
  int depth = 0;
  friend bool operator==(const BlockShape&, const BlockShape&) = default;
};

/// What the weight path of one Ethos-U configuration looks like. The table of all of them is pack/accelerator.h.
struct Accelerator {
  std::string name;                    ///< as Vela says it: "ethos-u55-128"
  NpuFamily family = NpuFamily::u55;
  int macs_per_cycle = 0;              ///< of 8-bit weights and feature maps, all cores together
  int cores = 1;                       ///< weight streams of one depth slice (standard format)
  std::vector<BlockShape> ofm_ublocks; ///< U55, U65: one. U85: several, of which each operator uses one
  BlockShape ifm_ublock;
  BlockShape largest_ofm_block;
  int ofm_split_depth = 16;            ///< a depth slice starts at a multiple of this where a compiler cuts one
  int largest_sub_kernel = 8;          ///< width and height; divided by the dilation
};

}  // namespace weightmill
