#include <algorithm>
#include <array>
#include <utility>

#include "best_sections.h"
#include "encoders.h"
#include "pieces.h"
#include "rice_search.h"
#include "section.h"

namespace weightmill::mlw {
namespace {

/// The search looks at so many weights at a time: its memory does not grow with the stream.
constexpr std::size_t kWindowWeights = std::size_t{1} << 18;

WeightSegments weight_segments(const PlannedSection& section) {
  WeightSegments segments;
  std::size_t end = 0;
  for (const PlannedSlice& slice : section.slices) segments.push_back({slice.code, end += slice.n_indices});
  return segments;
}

RunSegments run_segments(const PlannedSection& section) {
  RunSegments segments;
  if (!section.zero_runs) return segments;
  std::size_t end = 0;
  for (const PlannedSlice& slice : section.slices) segments.push_back({slice.run_code, end += slice.n_indices});
  ++segments.back().end;  // one run more than there are indices
  return segments;
}

/// Of a section of zeros: one of them is coded, as "minus zero".
PaletteChoice zeros_choice() {
  PaletteChoice choice;
  choice.only_zeros = true;
  choice.index_of[kMaxWeight] = 1;
  return choice;
}

std::uint64_t put_planned(BitWriter& out, std::span<const std::int16_t> weights, const PlannedSection& section,
                          const BestSettings& settings, SectionScratch& scratch) {
  const PaletteChoice choice = section.only_zeros ? zeros_choice() : index_table(section.palette);
  to_symbols(weights, choice, section.zero_runs, scratch.symbols);
  WeightSegments codes = weight_segments(section);
  constexpr std::int8_t kSwitchBits = 29;  // a header and half a chunk of filler
  if (settings.search_slices && (!section.zero_runs || section.slices.size() == 1)) {
    codes = cheapest_weight_segments(scratch.symbols.indices, uncompressed_bits(choice), kSwitchBits);
  }
  return put_section(out, {choice, scratch.symbols, codes, run_segments(section)}, scratch.planes);
}

struct Encoded {
  std::vector<std::uint8_t> stream;
  std::uint64_t passes = 0;
};

Encoded encode_with(std::span<const std::int16_t> weights, const BestSettings& settings) {
  BitWriter out;
  SectionScratch scratch;
  std::uint64_t n_passes = 0;
  for (std::size_t begin = 0; begin < weights.size(); begin += kWindowWeights) {
    const auto window = weights.subspan(begin, std::min(kWindowWeights, weights.size() - begin));
    for (const PlannedSection& section : plan_sections(window, find_pieces(window, settings), settings)) {
      const auto part = window.subspan(section.begin, section.end - section.begin);
      n_passes += put_planned(out, part, section, settings, scratch);
    }
  }
  put_end_of_stream(out);
  return {std::move(out).take(), n_passes};
}

/// `fast` has no time to look at what Vela's encoders would make of larger streams.
constexpr std::size_t kAlwaysChecked = 1024;

/// A pass of the decoder is worth three bits.
constexpr Price kPosition = 3 * kBit / kChunkWeights;

constexpr BestSettings settings_of(Effort effort, Forms forms) noexcept {
  if (effort == Effort::fast) return {forms, 512, 32, kPosition, false};
  return {forms, 128, 24, kPosition, true};
}

/// What a stream must keep to: no larger than the smaller stream of Vela's two encoders, and at most 5 % more passes than
/// the one that takes fewer, if the smaller one keeps to that; else than the smaller one.
class Limits {
 public:
  explicit Limits(std::span<const std::int16_t> weights) : Limits(vela_costs(weights)) {}

  bool too_large(const Encoded& encoded) const noexcept { return encoded.stream.size() * 8 > smaller().bits; }
  bool too_slow(const Encoded& encoded) const noexcept { return encoded.passes * 100 > passes_percent(); }

  std::vector<std::uint8_t> encode_smaller(std::span<const std::int16_t> weights) const {
    return regor_is_smaller_ ? encode_regor(weights) : encode_reference(weights);
  }

 private:
  explicit Limits(const VelaCosts& costs)
      : reference_(costs.reference),
        regor_(costs.regor),
        regor_is_smaller_(std::pair(regor_.bits, regor_.passes) < std::pair(reference_.bits, reference_.passes)) {}

  const Cost& smaller() const noexcept { return regor_is_smaller_ ? regor_ : reference_; }
  std::uint64_t passes_percent() const noexcept {
    return std::max(std::min(reference_.passes, regor_.passes) * 105, smaller().passes * 100);
  }

  Cost reference_, regor_;
  bool regor_is_smaller_;
};

/// The smallest of several streams that keep the limits.
class Contest {
 public:
  Contest(std::span<const std::int16_t> weights, const Limits& limits) : weights_(weights), limits_(limits) {}

  void enter(Encoded&& encoded) {
    too_slow_ = limits_.too_slow(encoded);
    if (too_slow_ || limits_.too_large(encoded)) return;
    if (is_open() || encoded.stream.size() < stream_.size()) stream_ = std::move(encoded.stream);
  }
  void enter(const BestSettings& settings) { enter(encode_with(weights_, settings)); }

  /// Searches again: with ever dearer passes where the stream entered last took too many, else with free ones.
  void enter_others(BestSettings settings) {
    if (!too_slow_) {
      settings.position = 0;
      enter(settings);
      return;
    }
    settings.search_slices = false;  // that search knows bits only
    for (settings.position = kPosition; is_open() && settings.position <= 64 * kPosition; settings.position *= 4) {
      enter(settings);
    }
  }

  bool is_open() const noexcept { return stream_.empty(); }
  std::vector<std::uint8_t> winner() && { return is_open() ? limits_.encode_smaller(weights_) : std::move(stream_); }

 private:
  std::span<const std::int16_t> weights_;
  const Limits& limits_;
  std::vector<std::uint8_t> stream_;
  bool too_slow_ = false;
};

/// What `max` tries beside the settings of `best`.
void enter_more(Contest& contest, Forms forms) {
  for (const std::size_t block : {16u, 32u, 64u, 512u}) {
    for (const std::size_t zeros : {16u, 40u}) contest.enter({forms, block, zeros, 1, true});
  }
}

}  // namespace

std::vector<std::uint8_t> encode_small(std::span<const std::int16_t> weights, Effort effort, Forms forms) {
  const BestSettings settings = settings_of(effort, forms);
  Encoded encoded = encode_with(weights, settings);
  if (effort == Effort::fast && weights.size() > kAlwaysChecked) return std::move(encoded.stream);
  const Limits limits(weights);
  Contest contest(weights, limits);
  contest.enter(std::move(encoded));
  if (effort == Effort::max) enter_more(contest, forms);
  if (contest.is_open()) contest.enter_others(settings);
  return std::move(contest).winner();
}

}  // namespace weightmill::mlw
