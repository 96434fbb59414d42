#include "section.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace weightmill::mlw {
namespace {

constexpr std::size_t kSplitBlock = 2048;  // its symbols stay in the first-level cache

std::uint16_t index_of(const PaletteChoice& choice, std::int16_t weight) noexcept {
  return choice.index_of[static_cast<std::size_t>(weight + kMaxWeight)];
}

/// Goes on with weights of which `run` zeros went before; returns the zeros at the end. Without a branch on zeros,
/// which come as they like: each weight writes its symbols, and only some are kept.
std::uint32_t split_block(std::span<const std::int16_t> weights, const PaletteChoice& choice, std::uint32_t run,
                          Symbols& symbols) {
  std::array<std::uint16_t, kSplitBlock> indices;
  std::array<std::uint32_t, kSplitBlock> runs;
  std::size_t n = 0;
  for (const std::int16_t weight : weights) {
    indices[n] = index_of(choice, weight);
    runs[n] = run;
    const std::uint32_t is_zero = weight == 0 ? 1 : 0;
    n += 1 - is_zero;
    run = (run + 1) & (0 - is_zero);
  }
  symbols.indices.insert(symbols.indices.end(), indices.begin(), indices.begin() + n);
  symbols.runs.insert(symbols.runs.end(), runs.begin(), runs.begin() + n);
  return run;
}

/// Without entries an index follows from its weight by arithmetic, which takes many at a time.
void fold_all(std::span<const std::int16_t> weights, const PaletteChoice& choice, std::uint16_t* indices) noexcept {
  const auto zero = static_cast<std::int16_t>(index_of(choice, 0));
  const auto offset = static_cast<std::int16_t>(choice.palette.direct_offset);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::int16_t weight = weights[i];
    const auto code = static_cast<std::int16_t>(weight < 0 ? 1 - 2 * weight : 2 * weight);
    indices[i] = static_cast<std::uint16_t>(weight == 0 ? zero : static_cast<std::int16_t>(code - offset));
  }
}

void split_zero_runs(std::span<const std::int16_t> weights, const PaletteChoice& choice, Symbols& symbols) {
  symbols.indices.reserve(weights.size());
  symbols.runs.reserve(weights.size() + 1);
  std::uint32_t run = 0;
  for (; !weights.empty(); weights = weights.subspan(std::min(kSplitBlock, weights.size()))) {
    run = split_block(weights.first(std::min(kSplitBlock, weights.size())), choice, run, symbols);
  }
  symbols.runs.push_back(run);
}

/// The runs of weights [begin, end): the run behind each, and for a section's first slice also the one before it.
std::span<const std::uint32_t> runs_of(const CodedSection& section, std::size_t begin, std::size_t end) noexcept {
  if (section.run_segments.empty()) return {};
  const std::size_t first = begin == 0 ? 0 : begin + 1;
  return std::span(section.symbols.runs).subspan(first, end + 1 - first);
}

}  // namespace

void to_symbols(std::span<const std::int16_t> weights, const PaletteChoice& choice, bool zero_runs, Symbols& symbols) {
  assert(!weights.empty());
  symbols.indices.clear();
  symbols.runs.clear();
  if (!zero_runs) {
    symbols.indices.resize(weights.size());
    if (choice.palette.size == 0) {
      fold_all(weights, choice, symbols.indices.data());
    } else {
      std::transform(weights.begin(), weights.end(), symbols.indices.begin(),
                     [&](std::int16_t weight) { return index_of(choice, weight); });
    }
  } else if (choice.only_zeros) {  // a slice has at least one index: the first zero is sent as one
    symbols.indices.push_back(index_of(choice, 0));
    symbols.runs = {0, static_cast<std::uint32_t>(weights.size() - 1)};
  } else {
    split_zero_runs(weights, choice, symbols);
  }
}

template <class Writer>
std::uint64_t put_section(Writer& out, const CodedSection& section, SlicePlanes& planes) {
  const std::span indices(section.symbols.indices);
  auto weight_segment = section.weight_segments.begin();
  auto run_segment = section.run_segments.begin();
  const bool has_runs = !section.run_segments.empty();
  std::uint64_t n_passes = 0;
  for (std::size_t begin = 0; begin < indices.size();) {
    std::size_t end = std::min(begin + kMaxEncodedSliceWeights, weight_segment->end);
    // Ends of run segments count runs and are yet taken as places of weights: run number `end` still has the old code.
    if (has_runs) end = std::min(end, run_segment->end);
    n_passes += put_slice(out,
                          Slice{.indices = indices.subspan(begin, end - begin),
                                .runs = runs_of(section, begin, end),
                                .weight_code = weight_segment->code,
                                .run_code = has_runs ? run_segment->code : RunCode::off(),
                                .palette = section.choice.palette,
                                .sends_palette = begin == 0},
                          planes);
    if (weight_segment->end == end) ++weight_segment;
    if (has_runs && run_segment->end == end) ++run_segment;
    begin = end;
  }
  return n_passes;
}

template std::uint64_t put_section(BitWriter&, const CodedSection&, SlicePlanes&);
template std::uint64_t put_section(CostMeter&, const CodedSection&, SlicePlanes&);

}  // namespace weightmill::mlw
