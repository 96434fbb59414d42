#include <algorithm>
#include <array>
#include <cassert>
#include <vector>

#include <weightmill/kernels/cheapest_path.h>

#include "lane_costs.h"
#include "rice_search.h"

namespace weightmill::mlw {
namespace {

/// Estimated cost of a slice header, charged for each change of code.
constexpr std::int8_t kSwitchBits = 40;

/// Shortest path through the values; a lane is the code of the value just coded. Of equally cheap lanes the first wins.
template <class Code>
class ShortestPath {
 public:
  explicit ShortestPath(const LaneCosts& costs) : costs_(costs), blocks_(1, PathBlock{}) {}

  /// Goes on through `values`, which must live until trace().
  void extend(std::span<const std::uint16_t> values, std::int8_t switch_bits) {
    if (values.empty()) return;
    const std::size_t first = blocks_.size() - 1;
    blocks_.resize(first + (values.size() + kPathBlock - 1) / kPathBlock + 1);
    cheapest_path(values, costs_, switch_bits, std::span(blocks_).subspan(first));
    pieces_.push_back({values, switch_bits, first});
    n_values_ += values.size();
  }

  std::vector<Segment<Code>> trace() const {
    std::vector<Segment<Code>> segments{{Code(cheapest(blocks_.back().lead)), n_values_}};
    std::size_t end = n_values_;
    for (auto piece = pieces_.rbegin(); piece != pieces_.rend(); ++piece) {
      end -= piece->values.size();
      trace_piece(*piece, end, segments);
    }
    std::reverse(segments.begin(), segments.end());
    return segments;
  }

 private:
  struct Piece {
    std::span<const std::uint16_t> values;
    std::int8_t switch_bits;
    std::size_t first_block;
  };

  static unsigned cheapest(const std::array<std::int8_t, kPathLanes>& lead) noexcept {
    return static_cast<unsigned>(std::min_element(lead.begin(), lead.end()) - lead.begin());
  }

  /// Goes back through a piece that begins at value number `begin`. The search kept only which lanes were entered in a
  /// block, and where the lane we are in was, the block's steps are made again.
  void trace_piece(const Piece& piece, std::size_t begin, std::vector<Segment<Code>>& segments) const {
    const std::size_t n_blocks = (piece.values.size() + kPathBlock - 1) / kPathBlock;
    for (std::size_t k = n_blocks; k-- > 0;) {
      const PathBlock& block = blocks_[piece.first_block + k];
      if ((block.switched >> segments.back().code.number() & 1) == 0) continue;
      const std::size_t offset = k * kPathBlock;
      const auto values = piece.values.subspan(offset, std::min(kPathBlock, piece.values.size() - offset));
      trace_block(block.lead, values, piece.switch_bits, begin + offset, segments);
    }
  }

  void trace_block(std::array<std::int8_t, kPathLanes> lead, std::span<const std::uint16_t> values,
                   std::int8_t switch_bits, std::size_t begin, std::vector<Segment<Code>>& segments) const {
    std::array<std::array<std::int8_t, kPathLanes>, kPathBlock> before;
    for (std::size_t i = 0; i < values.size(); ++i) {
      before[i] = lead;
      path_step(costs_.bits[values[i]], costs_.extra, switch_bits, lead);
    }
    for (std::size_t i = values.size(); i-- > 0;) {
      const bool switched = before[i][segments.back().code.number()] > switch_bits;
      if (switched) segments.push_back({Code(cheapest(before[i])), begin + i});
    }
  }

  LaneCosts costs_;
  std::vector<PathBlock> blocks_;
  std::vector<Piece> pieces_;
  std::size_t n_values_ = 0;
};

}  // namespace

WeightSegments cheapest_weight_segments(std::span<const std::uint16_t> indices, unsigned uncompressed,
                                        std::int8_t switch_bits) {
  assert(!indices.empty());
  ShortestPath<WeightCode> path(index_costs(uncompressed));
  path.extend(indices, switch_bits);
  return path.trace();
}

WeightSegments reference_weight_segments(std::span<const std::uint16_t> indices, unsigned uncompressed) {
  return cheapest_weight_segments(indices, uncompressed, kSwitchBits);
}

RunSegments reference_run_segments(std::span<const std::uint32_t> runs, const WeightSegments& weight_segments) {
  assert(!runs.empty());
  std::vector<std::uint16_t> values(runs.size());
  std::transform(runs.begin(), runs.end(), values.begin(),
                 [](std::uint32_t run) { return static_cast<std::uint16_t>(std::min(run, kLongRun)); });
  ShortestPath<RunCode> path(run_costs());
  std::size_t begin = 0;
  for (const auto& segment : weight_segments) {  // at the last value of each a switch is free
    path.extend(std::span(values).subspan(begin, segment.end - 1 - begin), kSwitchBits);
    path.extend(std::span(values).subspan(segment.end - 1, 1), 0);
    begin = segment.end;
  }
  path.extend(std::span(values).subspan(begin), kSwitchBits);
  return path.trace();
}

}  // namespace weightmill::mlw
