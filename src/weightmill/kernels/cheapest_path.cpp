#include "cheapest_path.h"

#include <algorithm>
#include <cassert>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cheapest_path.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace weightmill {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void search_path(std::span<const std::uint16_t> values, const LaneCosts& costs, std::int8_t switch_bits,
                 std::span<PathBlock> blocks) {
  cheapest_path_scalar(values, costs, switch_bits, blocks);
}
#else

namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::FixedTag<std::int8_t, kPathLanes>;
using Costs = hn::Vec<Lanes>;

/// The least of 16 lanes, in all of them.
HWY_INLINE Costs least(Costs x) {
  const Lanes d;
  const hn::Repartition<std::uint32_t, Lanes> d32;
  const auto swap64 = hn::Shuffle1032(hn::BitCast(d32, x));
  x = hn::Min(x, hn::BitCast(d, swap64));
  x = hn::Min(x, hn::BitCast(d, hn::Shuffle2301(hn::BitCast(d32, x))));
  x = hn::Min(x, hn::BitCast(d, hn::RotateRight<16>(hn::BitCast(d32, x))));
  return hn::Min(x, hn::BitCast(d, hn::RotateRight<8>(hn::BitCast(d32, x))));
}

struct Search {
  const std::int8_t* bits;
  Costs extra;
  Costs switch_bits;

  HWY_INLINE Costs cost(std::uint16_t value) const {
    return hn::Add(hn::LoadU(Lanes(), bits + std::size_t{value} * kPathLanes), extra);
  }
};

/// Every step by the rule. `most` grows to the highest cost met before a step.
HWY_INLINE Costs follow_rule(const Search& search, std::span<const std::uint16_t> values, Costs lead, Costs& most) {
  for (const std::uint16_t value : values) {
    most = hn::Max(most, lead);
    const Costs cost = hn::SaturatedAdd(hn::Min(lead, search.switch_bits), search.cost(value));
    lead = hn::Sub(cost, least(cost));
  }
  return lead;
}

/// The same in a third of the time as long as lane `best`, now the cheapest, stays so: costs are then counted from that
/// lane's. False if another one has become cheaper somewhere; the results are then of no use.
HWY_INLINE bool follow_best(const Search& search, std::span<const std::uint16_t> values, Costs best, Costs& lead,
                            Costs& most) {
  const Lanes d;
  Costs lowest = hn::Zero(d);
  for (const std::uint16_t value : values) {
    most = hn::Max(most, lead);
    const Costs cost = search.cost(value);
    const Costs step = hn::Sub(cost, hn::TableLookupBytes(cost, best));
    lead = hn::SaturatedAdd(hn::Min(lead, search.switch_bits), step);
    lowest = hn::Min(lowest, lead);
  }
  return hn::AllFalse(d, hn::Lt(lowest, hn::Zero(d)));
}

/// The first lane that costs nothing more than the cheapest, as a shuffle that spreads it.
HWY_INLINE Costs cheapest_lane(Costs lead) {
  const Lanes d;
  return hn::Set(d, static_cast<std::int8_t>(hn::FindFirstTrue(d, hn::Eq(lead, hn::Zero(d)))));
}

/// Trusts the cheapest lane for kStride values at a time, and where it was not the cheapest all the way for a quarter
/// of them, before it follows the rule.
template <std::size_t kStride>
HWY_INLINE Costs follow(const Search& search, std::span<const std::uint16_t> values, Costs lead, Costs& most) {
  constexpr std::size_t kSmallestStride = 4;
  for (std::size_t i = 0; i < values.size(); i += kStride) {
    const auto stride = values.subspan(i, std::min(kStride, values.size() - i));
    Costs fast_lead = lead;
    Costs fast_most = most;
    if (follow_best(search, stride, cheapest_lane(lead), fast_lead, fast_most)) {
      lead = fast_lead;
      most = fast_most;
    } else if constexpr (kStride > kSmallestStride) {
      lead = follow<kStride / 4>(search, stride, lead, most);
    } else {
      lead = follow_rule(search, stride, lead, most);
    }
  }
  return lead;
}

void search_path(std::span<const std::uint16_t> values, const LaneCosts& costs, std::int8_t switch_bits,
                 std::span<PathBlock> blocks) {
  const Lanes d;
  const Search search{costs.bits.data()->data(), hn::LoadU(d, costs.extra.data()), hn::Set(d, switch_bits)};
  const Costs lead_limit = hn::Set(d, kMaxSwitchBits + 1);
  Costs lead = hn::LoadU(d, blocks[0].lead.data());
  for (std::size_t k = 0; k + 1 < blocks.size(); ++k) {
    const auto block = values.subspan(k * kPathBlock, std::min(kPathBlock, values.size() - k * kPathBlock));
    Costs most = lead;
    lead = hn::Min(follow<16>(search, block, lead, most), lead_limit);
    hn::StoreU(lead, d, blocks[k + 1].lead.data());
    std::array<std::uint8_t, 8> mask{};
    hn::StoreMaskBits(d, hn::Gt(most, search.switch_bits), mask.data());
    blocks[k].switched = static_cast<std::uint16_t>(mask[0] | mask[1] << 8);
  }
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weightmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weightmill {

void path_step(std::span<const std::int8_t, kPathLanes> bits, const std::array<std::int8_t, kPathLanes>& extra,
               std::int8_t switch_bits, std::array<std::int8_t, kPathLanes>& lead) noexcept {
  std::array<std::int16_t, kPathLanes> cost;  // 16 bits: a compiler's vectors have a minimum of those everywhere
  std::int16_t cheapest = kNoWay;
  for (std::size_t lane = 0; lane < kPathLanes; ++lane) {
    cost[lane] = static_cast<std::int16_t>(std::min(lead[lane], switch_bits) + bits[lane] + extra[lane]);
    cheapest = std::min(cheapest, cost[lane]);
  }
  for (std::size_t lane = 0; lane < kPathLanes; ++lane) {
    const auto over = static_cast<std::int16_t>(cost[lane] - cheapest);
    lead[lane] = static_cast<std::int8_t>(std::min<std::int16_t>(over, kMaxSwitchBits + 1));
  }
}

void cheapest_path_scalar(std::span<const std::uint16_t> values, const LaneCosts& costs, std::int8_t switch_bits,
                          std::span<PathBlock> blocks) noexcept {
  std::array<std::int8_t, kPathLanes> lead = blocks[0].lead;
  for (std::size_t k = 0; k + 1 < blocks.size(); ++k) {
    blocks[k].switched = 0;
    for (const std::uint16_t value :
         values.subspan(k * kPathBlock, std::min(kPathBlock, values.size() - k * kPathBlock))) {
      for (std::size_t lane = 0; lane < kPathLanes; ++lane) {
        if (lead[lane] > switch_bits) blocks[k].switched = static_cast<std::uint16_t>(blocks[k].switched | 1u << lane);
      }
      path_step(costs.bits[value], costs.extra, switch_bits, lead);
    }
    blocks[k + 1].lead = lead;
  }
}

HWY_EXPORT(search_path);

void cheapest_path(std::span<const std::uint16_t> values, const LaneCosts& costs, std::int8_t switch_bits,
                   std::span<PathBlock> blocks) noexcept {
  assert(!blocks.empty() && blocks.size() == (values.size() + kPathBlock - 1) / kPathBlock + 1);
  HWY_DYNAMIC_DISPATCH(search_path)(values, costs, switch_bits, blocks);
}

}  // namespace weightmill
#endif
