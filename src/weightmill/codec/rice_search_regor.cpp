#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <weightmill/kernels/lane_lead.h>

#include "lane_costs.h"
#include "rice_search.h"

namespace weightmill::mlw {
namespace {

/// Estimated cost of a slice header; a code must be ahead by more than that to take over.
constexpr int kSwitchBits = 40;

/// One forward pass. Each code keeps a running total of what the section would have cost with a change to that code
/// where it last became usable; the active code gives way when it cannot code a value or when another is far ahead.
/// Totals are kept as leads over the active one's. A block of values at which nothing happens is taken at once.
class GreedySearch {
 public:
  GreedySearch(std::span<const std::uint16_t> indices, const LaneCosts& costs) : indices_(indices), costs_(costs) {}

  WeightSegments run() && {
    for (std::size_t begin = 0; begin < indices_.size(); begin += kPathBlock) {
      take<kPathBlock>(begin, std::min(begin + kPathBlock, indices_.size()));
    }
    if (segments_.empty() || segments_.back().code != WeightCode(active_)) {
      segments_.push_back({WeightCode(active_), 0});
    }
    segments_.back().end = indices_.size();
    return std::move(segments_);
  }

 private:
  static constexpr unsigned kNone = WeightCode::kCount;
  /// So much ahead a code stays ahead for a block, and 16 bits hold what the block adds.
  static constexpr int kFarAhead = 16000;

  /// Takes the values [begin, end), at most kBlock: at once, or where something happens among them in ever smaller
  /// blocks.
  template <std::size_t kBlock>
  void take(std::size_t begin, std::size_t end) {
    constexpr std::size_t kSmallestBlock = 4;
    block_begin_ = begin;
    if (active_ != kNone && follow_active(end)) return;
    if constexpr (kBlock > kSmallestBlock) {
      for (; begin < end; begin += kBlock / 4) take<kBlock / 4>(begin, std::min(begin + kBlock / 4, end));
    } else {
      for (; begin < end; ++begin) step(begin);
    }
  }

  /// Takes the block up to `end` if the active code stays active; otherwise nothing has changed.
  bool follow_active(std::size_t end) {
    LaneLeads leads;
    const auto capped = [](int lead) { return static_cast<std::int16_t>(std::min(lead, kFarAhead)); };
    std::transform(lead_.begin(), lead_.end(), leads.lead.begin(), capped);
    follow_active_lane(indices_.subspan(block_begin_, end - block_begin_), costs_, active_, leads);
    if ((leads.unusable >> active_ & 1) != 0) return false;
    if (*std::min_element(leads.lowest.begin(), leads.lowest.end()) < -kSwitchBits) return false;
    for (unsigned number = 0; number < kPathLanes; ++number) {
      const bool restarted = (leads.unusable >> number & 1) != 0;
      lead_[number] = restarted ? leads.lead[number] : lead_[number] + leads.lead[number] - capped(lead_[number]);
      if (restarted) unusable_in_[number] = block_begin_;
    }
    return true;
  }

  /// Takes value `i` by itself.
  void step(std::size_t i) {
    std::array<int, WeightCode::kCount> total;  // over the active code's before this value
    unsigned best = 0;
    int best_total = std::numeric_limits<int>::max();
    for (unsigned number = 0; number < WeightCode::kCount; ++number) {
      total[number] = lead_[number] + bits(i, number);
      if (!usable(i, number)) {
        unusable_in_[number] = block_begin_;
        total[number] = kSwitchBits;
      } else if (total[number] < best_total) {
        best_total = total[number];
        best = number;
      }
    }
    if (active_ == kNone || !usable(i, active_) || (best != active_ && best_total + kSwitchBits < 0)) {
      activate(i, best, active_ != kNone && best_total < total[active_]);
    }
    const int active_total = total[active_];
    for (unsigned number = 0; number < WeightCode::kCount; ++number) {
      lead_[number] = usable(i, number) ? total[number] - active_total : 0;
    }
  }

  /// Makes code `number` the active one from value `i` on, or, where it was `cheaper` and usable for as long, from
  /// where the one before began.
  void activate(std::size_t i, unsigned number, bool cheaper) {
    if (active_ != kNone && !(cheaper && usable_from(number, i) <= usable_from(active_, i))) {
      segments_.push_back({WeightCode(active_), i});
    }
    active_ = number;
  }

  /// The place behind the last index, up to number `i`, that the code cannot code.
  std::size_t usable_from(unsigned number, std::size_t i) const noexcept {
    if (!unusable_in_[number]) return 0;
    std::size_t place = std::min(*unusable_in_[number] + kPathBlock, i + 1);
    while (usable(place - 1, number)) --place;
    return place;
  }

  int bits(std::size_t i, unsigned number) const noexcept {
    return costs_.bits[indices_[i]][number] + costs_.extra[number];
  }
  bool usable(std::size_t i, unsigned number) const noexcept { return bits(i, number) != kNoWay; }

  std::span<const std::uint16_t> indices_;
  LaneCosts costs_;
  unsigned active_ = kNone;
  std::array<int, kPathLanes> lead_{};
  std::array<std::optional<std::size_t>, kPathLanes> unusable_in_;  ///< begin of the last block with such an index
  std::size_t block_begin_ = 0;
  WeightSegments segments_;
};

}  // namespace

WeightSegments regor_weight_segments(std::span<const std::uint16_t> indices, unsigned uncompressed) {
  assert(!indices.empty());
  return GreedySearch(indices, index_costs(uncompressed)).run();
}

RunSegments regor_run_segments(std::span<const std::uint32_t> runs) {
  assert(!runs.empty());
  std::array<std::uint64_t, RunCode::kCount> total{};
  unsigned active = 0;
  std::uint64_t active_total = 0;
  bool first = true;
  for (const std::uint32_t run : runs) {
    for (unsigned number = 0; number < RunCode::kCount; ++number) total[number] += run_bits(RunCode(number), run);
    const auto best = static_cast<unsigned>(std::min_element(total.begin(), total.end()) - total.begin());
    // All codes can code every run: whichever becomes active takes over from the beginning.
    if (std::exchange(first, false) || (best != active && total[best] + kSwitchBits < active_total)) active = best;
    active_total = total[active];
  }
  return {{RunCode(active), runs.size()}};
}

}  // namespace weightmill::mlw
