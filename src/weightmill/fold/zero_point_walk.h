#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "broadcast.h"
#include "zero_point.h"

namespace weightmill {

/// Takes zero points out of blocks of codes. `Zero` gives the zero point of an own element of `index`.
///
/// Returns false at the first code that has no code without its zero point; the block is then half done.
template <class Zero>
bool drop_zero_points(const ZeroPointRule& rule, const BroadcastIndex& index, const Zero& zero_at, std::uint64_t first,
                      std::span<std::int32_t> codes) {
  for (std::size_t i = 0; i < codes.size();) {
    const std::uint64_t flat = first + i;
    const std::uint64_t run = std::min<std::uint64_t>(codes.size() - i, index.run() - flat % index.run());
    const float zero_point = zero_at(index.at(flat));
    for (const std::size_t end = i + run; i < end; ++i) {
      const auto without = rule.without(codes[i], zero_point);
      if (!without) return false;
      codes[i] = *without;
    }
  }
  return true;
}

}  // namespace weightmill
