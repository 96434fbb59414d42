#include <algorithm>

#include "encoders.h"
#include "rice_search.h"
#include "section.h"

namespace weightmill::mlw {
namespace {

/// Zeros that stand beside another zero. Each weight is looked at with its neighbours, many at a time.
std::size_t count_zeros_in_runs(std::span<const std::int16_t> weights) noexcept {
  const std::size_t n = weights.size();
  if (n < 2) return 0;
  const auto is_zero = [&](std::size_t i) { return weights[i] == 0 ? 1u : 0u; };  // a number: no branch is taken
  std::size_t in_runs = (is_zero(0) & is_zero(1)) + (is_zero(n - 1) & is_zero(n - 2));
  for (std::size_t i = 1; i + 1 < n; ++i) in_runs += is_zero(i) & (is_zero(i - 1) | is_zero(i + 1));
  return in_runs;
}

}  // namespace

bool regor_wants_zero_runs(std::span<const std::int16_t> weights, const Histogram& histogram) noexcept {
  constexpr std::uint64_t kFactor = 5;
  std::uint32_t most_common = 0;  // of all but zero
  for (int weight = -kMaxWeight; weight <= kMaxWeight; ++weight) {
    if (weight != 0) most_common = std::max(most_common, histogram[weight]);
  }
  return histogram[0] > kFactor * most_common && count_zeros_in_runs(weights) >= histogram[0] / 2;
}

namespace {

template <class Writer>
std::uint64_t put_regor_section(Writer& out, std::span<const std::int16_t> weights, SectionScratch& scratch) {
  Histogram histogram;
  histogram.count(weights);
  const bool zero_runs = regor_wants_zero_runs(weights, histogram);
  const PaletteChoice choice = choose_palette(histogram, zero_runs, Coverage::at_least_half);
  to_symbols(weights, choice, zero_runs, scratch.symbols);
  const WeightSegments weight_segments = regor_weight_segments(scratch.symbols.indices, uncompressed_bits(choice));
  const RunSegments run_segments = zero_runs ? regor_run_segments(scratch.symbols.runs) : RunSegments{};
  return put_section(out, {choice, scratch.symbols, weight_segments, run_segments}, scratch.planes);
}

/// Returns the number of passes that the decoder will make.
template <class Writer>
std::uint64_t put_regor(Writer& out, std::span<const std::int16_t> weights) {
  SectionScratch scratch;
  std::uint64_t n_passes = 0;
  for (std::size_t begin = 0; begin < weights.size(); begin += kRegorSectionWeights) {
    const std::size_t size = std::min(kRegorSectionWeights, weights.size() - begin);
    n_passes += put_regor_section(out, weights.subspan(begin, size), scratch);
  }
  put_end_of_stream(out);
  return n_passes;
}

}  // namespace

std::vector<std::uint8_t> encode_regor(std::span<const std::int16_t> weights) {
  BitWriter out(weights.size());
  put_regor(out, weights);
  return std::move(out).take();
}

Cost regor_cost(std::span<const std::int16_t> weights) {
  CostMeter out;
  const std::uint64_t n_passes = put_regor(out, weights);
  return {out.size_bits(), n_passes};
}

}  // namespace weightmill::mlw
