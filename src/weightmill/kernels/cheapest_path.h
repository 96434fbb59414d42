#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weightmill {

inline constexpr std::size_t kPathLanes = 16;
inline constexpr std::size_t kPathBlock = 64;
inline constexpr std::int8_t kMaxSwitchBits = 40;
/// A lane that costs this much cannot take the value.
inline constexpr std::int8_t kNoWay = 127;

/// What a value costs in each of 16 lanes: bits[value] + extra, lane by lane. Lanes that are not used say kNoWay.
struct LaneCosts {
  std::span<const std::array<std::int8_t, kPathLanes>> bits;  ///< 0 to 127 for each value
  std::array<std::int8_t, kPathLanes> extra;                  ///< the same for all values; sums stay within 127
};

/// A search for the cheapest way of coding values, at a place between two of them.
struct PathBlock {
  /// Cost of the cheapest way so far that ends in the lane, over the cheapest of all. Above kMaxSwitchBits the lane
  /// will be entered from another one, whatever the cost: such costs all count as kMaxSwitchBits + 1.
  std::array<std::int8_t, kPathLanes> lead;
  std::uint16_t switched;  ///< lanes that were entered from another one for some value of the block that begins here
};

/// One step of the search: a lane whose lead is above `switch_bits` is entered from the cheapest one, where that and a
/// switch cost less than staying; then each takes the value.
void path_step(std::span<const std::int8_t, kPathLanes> bits, const std::array<std::int8_t, kPathLanes>& extra,
                        std::int8_t switch_bits, std::array<std::int8_t, kPathLanes>& lead) noexcept;

/// Searches through all of `values`. blocks[0].lead is the start; the rest of `blocks` is filled: `switched` of block k
/// and `lead` of block k + 1 for values [64 k, 64 k + 64); the last block, behind all values, is only a `lead`.
/// Requires: blocks.size() = values / 64, rounded up, + 1; switch_bits <= kMaxSwitchBits; for each value a lane that
/// costs at most 46.
void cheapest_path(std::span<const std::uint16_t> values, const LaneCosts& costs, std::int8_t switch_bits,
                   std::span<PathBlock> blocks) noexcept;

/// The definition that every SIMD target is held to.
void cheapest_path_scalar(std::span<const std::uint16_t> values, const LaneCosts& costs, std::int8_t switch_bits,
                          std::span<PathBlock> blocks) noexcept;

}  // namespace weightmill
