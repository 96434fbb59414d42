#include "lane_costs.h"

#include <algorithm>
#include <array>
#include <limits>

#include "golomb_rice.h"

namespace weightmill::mlw {
namespace {

using LaneBits = std::array<std::int8_t, kPathLanes>;

/// Those of uncompressed mode depend on the section and are added.
constexpr auto kIndexBits = [] {
  std::array<LaneBits, kCodeValues> table{};
  for (unsigned index = 0; index < kCodeValues; ++index) {
    table[index].fill(kNoWay);
    for (unsigned number = 0; number < WeightCode::kCount; ++number) {
      const WeightCode code(number);
      if (code.can_code(index)) table[index][number] = static_cast<std::int8_t>(weight_bits(code, index, 0));
    }
  }
  return table;
}();

constexpr auto kRunBits = [] {
  std::array<LaneBits, kLongRun + 1> table{};
  for (std::uint32_t run = 0; run <= kLongRun; ++run) {
    table[run].fill(kNoWay);
    std::uint64_t cheapest = std::numeric_limits<std::uint64_t>::max();
    for (unsigned number = 0; number < RunCode::kCount; ++number) {
      cheapest = std::min(cheapest, run_bits(RunCode(number), run));
    }
    for (unsigned number = 0; number < RunCode::kCount; ++number) {
      const std::uint64_t over = run_bits(RunCode(number), run) - cheapest;
      table[run][number] = static_cast<std::int8_t>(std::min<std::uint64_t>(over, kNoWay));
    }
  }
  return table;
}();

}  // namespace

LaneCosts index_costs(unsigned uncompressed) noexcept {
  LaneCosts costs{kIndexBits, {}};
  costs.extra[WeightCode::kUncompressed] = static_cast<std::int8_t>(uncompressed);
  return costs;
}

LaneCosts run_costs() noexcept { return {kRunBits, {}}; }

}  // namespace weightmill::mlw
