#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weightmill {

/// Sums over a stretch of values from which the bits of every Golomb-Rice code of them follow.
struct IndexSums {
  static constexpr std::size_t kShifts = 7;

  std::uint32_t n = 0;                             ///< values
  std::uint32_t n_zero = 0;                        ///< weights that are 0
  std::array<std::uint32_t, kShifts> quotients{};  ///< [d]: sum of value >> d
  std::array<std::uint32_t, kShifts - 1> above{};  ///< [d]: values of 2^d or more
  std::uint16_t largest = 0;
};

inline constexpr std::size_t kMaxSumWeights = 1024;

/// Folds each weight (0, +1, -1, +2 … -> 0, 2, 3, 4 …), takes `offset` off, where that leaves less than 0 takes 0, and
/// sums the results up.  Requires: at most kMaxSumWeights weights, each in [-255, 255]; offset <= 2.
IndexSums index_sums(std::span<const std::int16_t> weights, unsigned offset) noexcept;

/// The definition that every SIMD target is held to.
IndexSums index_sums_scalar(std::span<const std::int16_t> weights, unsigned offset) noexcept;

}  // namespace weightmill
