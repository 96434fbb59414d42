#include "encoders.h"
#include "rice_search.h"
#include "section.h"

namespace weightmill::mlw {
namespace {

/// Weights that are one section to both encoders.
class SharedSection {
 public:
  explicit SharedSection(std::span<const std::int16_t> weights) : weights_(weights) { histogram_.count(weights); }

  VelaCosts costs() {
    VelaCosts costs;
    use(reference_wants_zero_runs(histogram_), Coverage::more_than_half);
    const WeightSegments segments = reference_weight_segments(scratch_.symbols.indices, uncompressed_bits(choice_));
    costs.reference =
        cost(segments, zero_runs_ ? reference_run_segments(scratch_.symbols.runs, segments) : RunSegments{});
    use(regor_wants_zero_runs(weights_, histogram_), Coverage::at_least_half);
    costs.regor = cost(regor_weight_segments(scratch_.symbols.indices, uncompressed_bits(choice_)),
                       zero_runs_ ? regor_run_segments(scratch_.symbols.runs) : RunSegments{});
    return costs;
  }

 private:
  /// Makes the symbols, unless those at hand are the same.
  void use(bool zero_runs, Coverage coverage) {
    const PaletteChoice choice = choose_palette(histogram_, zero_runs, coverage);
    const bool known =
        !scratch_.symbols.indices.empty() && zero_runs == zero_runs_ && choice.palette.size == choice_.palette.size;
    if (known) return;
    choice_ = choice;
    zero_runs_ = zero_runs;
    to_symbols(weights_, choice_, zero_runs_, scratch_.symbols);
  }

  Cost cost(const WeightSegments& weight_segments, const RunSegments& run_segments) {
    CostMeter out;
    const std::uint64_t n_passes =
        put_section(out, {choice_, scratch_.symbols, weight_segments, run_segments}, scratch_.planes);
    put_end_of_stream(out);
    return {out.size_bits(), n_passes};
  }

  std::span<const std::int16_t> weights_;
  Histogram histogram_;
  PaletteChoice choice_;
  bool zero_runs_ = false;
  SectionScratch scratch_;
};

}  // namespace

VelaCosts vela_costs(std::span<const std::int16_t> weights, std::span<const std::size_t> starts) {
  const bool is_one = weights.size() <= kRegorSectionWeights && starts.size() == 1;
  return is_one ? SharedSection(weights).costs() : VelaCosts{reference_cost(weights, starts), regor_cost(weights)};
}

}  // namespace weightmill::mlw
