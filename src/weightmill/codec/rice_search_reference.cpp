#include <algorithm>
#include <array>
#include <cassert>
#include <vector>

#include "rice_search.h"

namespace weightmill::mlw {
namespace {

/// Estimated cost of a slice header, charged for each change of code.
constexpr std::uint64_t kSwitchBits = 40;
/// More than any detour around a code that cannot code a value.
constexpr std::uint64_t kImpossibleBits = 10000;

/// Shortest path through the values; a state is the code of the value just coded. Of equally cheap states the one with
/// the lowest number wins, and a switch must be cheaper than staying.
template <class Code>
class ShortestPath {
 public:
  explicit ShortestPath(std::size_t n_values) { came_from_.reserve(n_values); }

  /// Takes one value. `bits_of(number)`: its cost in that code.
  template <class BitsOf>
  void step(std::uint64_t switch_bits, const BitsOf& bits_of) {
    const auto best = std::min_element(cost_.begin(), cost_.end());
    const std::uint64_t after_switch = *best + switch_bits;
    const auto best_number = static_cast<std::uint8_t>(best - cost_.begin());
    auto& from = came_from_.emplace_back();
    for (unsigned number = 0; number < Code::kCount; ++number) {
      const bool switches = after_switch < cost_[number];
      from[number] = switches ? best_number : static_cast<std::uint8_t>(number);
      cost_[number] = (switches ? after_switch : cost_[number]) + bits_of(number);
    }
  }

  std::vector<Segment<Code>> trace() const {
    std::vector<Segment<Code>> segments;
    auto number = static_cast<unsigned>(std::min_element(cost_.begin(), cost_.end()) - cost_.begin());
    segments.push_back({Code(number), came_from_.size()});
    for (std::size_t i = came_from_.size(); i-- > 0;) {
      const unsigned before = came_from_[i][number];
      if (before != number && i > 0) segments.push_back({Code(before), i});
      number = before;
    }
    std::reverse(segments.begin(), segments.end());
    return segments;
  }

 private:
  std::array<std::uint64_t, Code::kCount> cost_{};
  std::vector<std::array<std::uint8_t, Code::kCount>> came_from_;
};

}  // namespace

WeightSegments reference_weight_segments(std::span<const std::uint16_t> indices, unsigned uncompressed) {
  assert(!indices.empty());
  ShortestPath<WeightCode> path(indices.size());
  for (const std::uint16_t index : indices) {
    path.step(kSwitchBits, [&](unsigned number) -> std::uint64_t {
      const WeightCode code(number);
      return code.can_code(index) ? weight_bits(code, index, uncompressed) : kImpossibleBits;
    });
  }
  return path.trace();
}

RunSegments reference_run_segments(std::span<const std::uint32_t> runs, const WeightSegments& weight_segments) {
  assert(!runs.empty());
  ShortestPath<RunCode> path(runs.size());
  auto slice_end = weight_segments.begin();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool is_free = slice_end != weight_segments.end() && slice_end->end == i + 1;
    if (is_free) ++slice_end;
    path.step(is_free ? 0 : kSwitchBits, [&](unsigned number) { return run_bits(RunCode(number), runs[i]); });
  }
  return path.trace();
}

}  // namespace weightmill::mlw
