#include "encoders.h"
#include "rice_search.h"
#include "section.h"
#include "sections.h"

namespace weightmill::mlw {

bool reference_wants_zero_runs(const Histogram& histogram) noexcept {
  constexpr std::uint64_t kFactor = 4;
  std::uint32_t most_common = 0;  // of all but zero
  for (int weight = -kMaxWeight; weight <= kMaxWeight; ++weight) {
    if (weight != 0) most_common = std::max(most_common, histogram[weight]);
  }
  return histogram[0] > kFactor * most_common;
}

namespace {

template <class Writer>
std::uint64_t put_reference_section(Writer& out, std::span<const std::int16_t> weights, SectionScratch& scratch) {
  Histogram histogram;
  histogram.count(weights);
  const bool zero_runs = reference_wants_zero_runs(histogram);
  const PaletteChoice choice = choose_palette(histogram, zero_runs, Coverage::more_than_half);
  to_symbols(weights, choice, zero_runs, scratch.symbols);
  const WeightSegments weight_segments = reference_weight_segments(scratch.symbols.indices, uncompressed_bits(choice));
  const RunSegments run_segments =
      zero_runs ? reference_run_segments(scratch.symbols.runs, weight_segments) : RunSegments{};
  return put_section(out, {choice, scratch.symbols, weight_segments, run_segments}, scratch.planes);
}

/// Returns the number of passes that the decoder will make.
template <class Writer>
std::uint64_t put_reference(Writer& out, std::span<const std::int16_t> weights, std::span<const std::size_t> starts) {
  SectionScratch scratch;
  std::uint64_t n_passes = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t end = i + 1 < starts.size() ? starts[i + 1] : weights.size();
    n_passes += put_reference_section(out, weights.subspan(starts[i], end - starts[i]), scratch);
  }
  put_end_of_stream(out);
  return n_passes;
}

}  // namespace

std::vector<std::uint8_t> encode_reference(std::span<const std::int16_t> weights) {
  BitWriter out(weights.size());
  put_reference(out, weights, reference_section_starts(weights));
  return std::move(out).take();
}

Cost reference_cost(std::span<const std::int16_t> weights, std::span<const std::size_t> starts) {
  CostMeter out;
  const std::uint64_t n_passes = put_reference(out, weights, starts);
  return {out.size_bits(), n_passes};
}

}  // namespace weightmill::mlw
