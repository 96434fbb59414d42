#include <array>
#include <cassert>
#include <limits>
#include <optional>
#include <vector>

#include "rice_search.h"

namespace weightmill::mlw {
namespace {

/// Estimated cost of a slice header; a code must be ahead by more than that to take over.
constexpr std::uint64_t kSwitchBits = 40;

/// One forward pass. Each code keeps a running total of what the section would have cost with a change to that code
/// where it last became usable; the active code gives way when it cannot code a value or when another is far ahead.
template <class Code>
class GreedySearch {
 public:
  /// Takes one value. `bits_of(number)`: its cost in that code, or nothing where the code cannot code it.
  template <class BitsOf>
  void step(const BitsOf& bits_of) {
    unsigned best = 0;
    std::uint64_t best_total = std::numeric_limits<std::uint64_t>::max();
    for (unsigned number = 0; number < Code::kCount; ++number) {
      State& state = states_[number];
      const std::optional<std::uint64_t> bits = bits_of(number);
      if (!bits) {
        state.unusable_before = n_values_ + 1;
        state.total += kSwitchBits;
      } else {
        if (!state.usable) state.total = active_total_;
        state.total += *bits;
        if (state.total < best_total) {
          best_total = state.total;
          best = number;
        }
      }
      state.usable = bits.has_value();
    }
    if (!active_ || !states_[*active_].usable || (best != *active_ && best_total + kSwitchBits < active_total_)) activate(best);
    active_total_ = states_[*active_].total;
    ++n_values_;
  }

  std::vector<Segment<Code>> finish() && {
    if (segments_.empty() || segments_.back().code != Code(*active_)) segments_.push_back({Code(*active_), n_values_});
    segments_.back().end = n_values_;
    return std::move(segments_);
  }

 private:
  struct State {
    std::uint64_t total = 0;          ///< bits
    std::size_t unusable_before = 0;  ///< the code can code all values from here on
    bool usable = false;              ///< could code the value just taken
  };

  void activate(unsigned number) {
    if (active_) {
      const State& next = states_[number];
      const State& now = states_[*active_];
      const bool takes_over_all = next.total < now.total && next.unusable_before <= now.unusable_before;
      if (!takes_over_all) segments_.push_back({Code(*active_), n_values_});
    }
    active_ = number;
  }

  std::array<State, Code::kCount> states_{};
  std::optional<unsigned> active_;
  std::uint64_t active_total_ = 0;  ///< of the active code, as of the value before
  std::size_t n_values_ = 0;
  std::vector<Segment<Code>> segments_;
};

}  // namespace

WeightSegments regor_weight_segments(std::span<const std::uint16_t> indices, unsigned uncompressed) {
  assert(!indices.empty());
  GreedySearch<WeightCode> search;
  for (const std::uint16_t index : indices) {
    search.step([&](unsigned number) -> std::optional<std::uint64_t> {
      const WeightCode code(number);
      if (!code.can_code(index)) return std::nullopt;
      return weight_bits(code, index, uncompressed);
    });
  }
  return std::move(search).finish();
}

RunSegments regor_run_segments(std::span<const std::uint32_t> runs) {
  assert(!runs.empty());
  GreedySearch<RunCode> search;
  for (const std::uint32_t run : runs) {
    search.step([&](unsigned number) { return std::optional(run_bits(RunCode(number), run)); });
  }
  return std::move(search).finish();
}

}  // namespace weightmill::mlw
