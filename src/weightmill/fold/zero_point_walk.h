#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "broadcast.h"
#include "zero_point.h"

namespace weightmill {

/// ZeroPointRule::without() for one zero point, each code worked out once.
class ZeroPointMemo {
 public:
  ZeroPointMemo(const ZeroPointRule& rule, float zero_point) : rule_(rule), zero_point_(zero_point) {
    known_.fill(kUnknown);
  }

  std::optional<std::int32_t> without(std::int32_t code) {
    std::int16_t& known = known_[static_cast<std::uint8_t>(code)];
    if (known == kUnknown) {
      const auto result = rule_.without(code, zero_point_);
      known = result ? static_cast<std::int16_t>(*result) : kImpossible;
    }
    return known == kImpossible ? std::nullopt : std::optional<std::int32_t>(known);
  }

 private:
  static constexpr std::int16_t kUnknown = INT16_MIN, kImpossible = INT16_MAX;
  const ZeroPointRule& rule_;
  float zero_point_;
  std::array<std::int16_t, 256> known_;  ///< by the code's low 8 bits, which tell codes of up to 8 bits apart
};

/// Takes zero points out of blocks of codes. `Zero` gives the zero point of an own element of `index`.
///
/// Returns false at the first code that has no code without its zero point; the block is then half done.
template <class Zero>
bool drop_zero_points(const ZeroPointRule& rule, const BroadcastIndex& index, const Zero& zero_at, std::uint64_t first,
                      std::span<std::int32_t> codes) {
  constexpr std::uint64_t kLongRun = 64;  // from here on a memo costs less than it saves
  for (std::size_t i = 0; i < codes.size();) {
    const std::uint64_t flat = first + i;
    const std::uint64_t run = std::min<std::uint64_t>(codes.size() - i, index.run() - flat % index.run());
    const float zero_point = zero_at(index.at(flat));
    std::optional<ZeroPointMemo> memo;
    if (run >= kLongRun && rule.has_narrow_codes()) memo.emplace(rule, zero_point);
    for (const std::size_t end = i + run; i < end; ++i) {
      const auto without = memo ? memo->without(codes[i]) : rule.without(codes[i], zero_point);
      if (!without) return false;
      codes[i] = *without;
    }
  }
  return true;
}

}  // namespace weightmill
