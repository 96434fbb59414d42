#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cheapest_path.h"

namespace weightmill {

/// Totals of 16 lanes against that of one of them, the active one.
struct LaneLeads {
  /// Total of the lane less the total of the active one. 0 behind a value that the lane cannot take: it starts anew
  /// there.
  std::array<std::int16_t, kPathLanes> lead;
  /// The least that a total came to less the active one's before the same value, over the values that the lane can
  /// take.
  std::array<std::int16_t, kPathLanes> lowest;
  std::uint16_t unusable;  ///< lanes that could not take some value
};

/// Adds the costs of up to kPathBlock values to `leads.lead`, fills `lowest` (0 at most) and `unusable`.
/// Requires: leads within +-16000; while the active lane cannot take a value the leads mean nothing.
void follow_active_lane(std::span<const std::uint16_t> values, const LaneCosts& costs, std::size_t active,
                        LaneLeads& leads) noexcept;

/// The definition that every SIMD target is held to.
void follow_active_lane_scalar(std::span<const std::uint16_t> values, const LaneCosts& costs, std::size_t active,
                               LaneLeads& leads) noexcept;

}  // namespace weightmill
