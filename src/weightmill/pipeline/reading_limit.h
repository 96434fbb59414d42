#pragma once

#include <cstdint>

namespace weightmill {

/// Whether a verb would read a model of `size` bytes many times over. Real models share a constant between a few
/// operators; a made-up one could ask for its bytes as often as it has operators.
constexpr bool reads_too_often(std::uint64_t n_bytes, std::uint64_t size) {
  constexpr std::uint64_t kMaxReadings = 64;
  constexpr std::uint64_t kFreeBytes = std::uint64_t{1} << 30;
  return n_bytes / kMaxReadings > size && n_bytes > kFreeBytes;
}

}  // namespace weightmill
