#include "lane_lead.h"

#include <algorithm>
#include <cassert>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lane_lead.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace weightmill {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void follow(std::span<const std::uint16_t> values, const LaneCosts& costs, std::size_t active, LaneLeads& leads) {
  follow_active_lane_scalar(values, costs, active, leads);
}
#else

namespace hn = hwy::HWY_NAMESPACE;

using Wide = hn::CappedTag<std::int16_t, kPathLanes>;
using Narrow = hn::Rebind<std::int8_t, Wide>;

/// The lanes from number `first` on, as many as a vector has. Returns those of them that could not take some value.
HWY_INLINE std::uint16_t follow_lanes(std::span<const std::uint16_t> values, const LaneCosts& costs, std::size_t active,
                                      std::size_t first, LaneLeads& leads) {
  const Wide d;
  const Narrow narrow;
  const auto* bits = costs.bits.data();
  const auto extra = hn::PromoteTo(d, hn::LoadU(narrow, costs.extra.data() + first));
  const auto no_way = hn::Set(d, kNoWay);
  auto lead = hn::LoadU(d, leads.lead.data() + first);
  auto lowest = hn::Zero(d);
  auto most = hn::Zero(d);
  for (const std::uint16_t value : values) {
    const auto cost = hn::Add(hn::PromoteTo(d, hn::LoadU(narrow, bits[value].data() + first)), extra);
    const auto of_active = hn::Set(d, static_cast<std::int16_t>(bits[value][active] + costs.extra[active]));
    const auto unusable = hn::VecFromMask(d, hn::Eq(cost, no_way));
    const auto total = hn::Add(lead, cost);
    lowest = hn::Min(lowest, hn::AndNot(unusable, total));
    lead = hn::AndNot(unusable, hn::Sub(total, of_active));
    most = hn::Max(most, cost);
  }
  hn::StoreU(lead, d, leads.lead.data() + first);
  hn::StoreU(lowest, d, leads.lowest.data() + first);
  std::array<std::uint8_t, 8> mask{};
  hn::StoreMaskBits(d, hn::Eq(most, no_way), mask.data());
  return static_cast<std::uint16_t>(mask[0] | mask[1] << 8);
}

void follow(std::span<const std::uint16_t> values, const LaneCosts& costs, std::size_t active, LaneLeads& leads) {
  const std::size_t n_lanes = hn::Lanes(Wide());
  leads.unusable = 0;
  for (std::size_t first = 0; first < kPathLanes; first += n_lanes) {
    const std::uint16_t unusable = follow_lanes(values, costs, active, first, leads);
    leads.unusable = static_cast<std::uint16_t>(leads.unusable | unusable << first);
  }
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weightmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weightmill {

void follow_active_lane_scalar(std::span<const std::uint16_t> values, const LaneCosts& costs, std::size_t active,
                               LaneLeads& leads) noexcept {
  leads.lowest.fill(0);
  leads.unusable = 0;
  for (const std::uint16_t value : values) {
    const int of_active = costs.bits[value][active] + costs.extra[active];
    for (std::size_t lane = 0; lane < kPathLanes; ++lane) {
      const int cost = costs.bits[value][lane] + costs.extra[lane];
      const int total = leads.lead[lane] + cost;
      const bool usable = cost != kNoWay;
      if (usable) leads.lowest[lane] = static_cast<std::int16_t>(std::min<int>(leads.lowest[lane], total));
      leads.lead[lane] = static_cast<std::int16_t>(usable ? total - of_active : 0);
      if (!usable) leads.unusable = static_cast<std::uint16_t>(leads.unusable | 1u << lane);
    }
  }
}

HWY_EXPORT(follow);

void follow_active_lane(std::span<const std::uint16_t> values, const LaneCosts& costs, std::size_t active,
                        LaneLeads& leads) noexcept {
  assert(values.size() <= kPathBlock && active < kPathLanes);
  HWY_DYNAMIC_DISPATCH(follow)(values, costs, active, leads);
}

}  // namespace weightmill
#endif
