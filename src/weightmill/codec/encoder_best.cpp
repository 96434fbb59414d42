#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "best_sections.h"
#include "encoders.h"
#include "pieces.h"
#include "rice_search.h"
#include "section.h"
#include "sections.h"

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

  Cost cost() const noexcept { return {stream.size() * 8, passes}; }
};

/// Where palettes may change beside the places that the search finds, which knows none: starts of sections.
using Starts = std::vector<std::size_t>;

/// Cuts the pieces of the weights [begin, end) of a stream at its `starts`.
std::vector<Piece> cut_at(const std::vector<Piece>& pieces, const Starts& starts, std::size_t begin) {
  std::vector<Piece> cut;
  auto start = std::upper_bound(starts.begin(), starts.end(), begin);
  for (Piece piece : pieces) {
    for (; start != starts.end() && *start - begin < piece.end; ++start) {
      if (*start - begin <= piece.begin) continue;
      cut.push_back({piece.begin, *start - begin, piece.zero_runs});
      piece.begin = *start - begin;
    }
    cut.push_back(piece);
  }
  return cut;
}

/// Which weights occur, a byte each: for the processor that is less work than a bit.
using Occurring = std::array<std::uint8_t, 2 * kMaxWeight + 1>;

std::size_t count_of(const Occurring& occurring) noexcept {
  return std::accumulate(occurring.begin(), occurring.end(), std::size_t{0});
}

/// Whether stretches of a stream have few values each, and others than the rest. Looks at one block in sixteen.
bool may_have_local_palettes(std::span<const std::int16_t> weights) {
  constexpr std::size_t kBlock = 512, kSample = 16 * kBlock, kFew = 48;
  Occurring all{};
  std::size_t fewest = all.size();
  for (std::size_t begin = 0; begin + kBlock <= weights.size(); begin += kSample) {
    Occurring found{};
    for (const std::int16_t weight : weights.subspan(begin, kBlock))
      found[static_cast<unsigned>(weight + kMaxWeight)] = 1;
    const std::size_t count = count_of(found);
    if (count > 1) fewest = std::min(fewest, count);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] |= found[i];
  }
  return fewest <= kFew && count_of(all) > 2 * fewest;
}

class BestEncoder {
 public:
  BestEncoder(std::span<const std::int16_t> weights, const Starts& starts)
      : weights_(weights), starts_(starts), out_(weights.size()) {}

  /// Goes on up to weight `end` of the stream.
  void put_up_to(std::size_t end, const BestSettings& settings) {
    for (; done_ < end; done_ = std::min(done_ + kWindowWeights, end)) {
      put_window(weights_.subspan(done_, std::min(kWindowWeights, end - done_)), settings);
    }
  }

  Encoded finish() && {
    put_end_of_stream(out_);
    return {std::move(out_).take(), n_passes_};
  }

 private:
  void put_window(std::span<const std::int16_t> window, const BestSettings& settings) {
    std::vector<Piece> pieces = find_pieces(window, settings);
    if (starts_.size() > 1) pieces = cut_at(pieces, starts_, done_);
    for (const PlannedSection& section : plan_sections(window, pieces, settings)) {
      const auto part = window.subspan(section.begin, section.end - section.begin);
      n_passes_ += put_planned(out_, part, section, settings, scratch_);
    }
  }

  std::span<const std::int16_t> weights_;
  const Starts& starts_;
  BitWriter out_;
  SectionScratch scratch_;
  std::size_t done_ = 0;
  std::uint64_t n_passes_ = 0;
};

Encoded encode_with(std::span<const std::int16_t> weights, const Starts& starts, const BestSettings& settings) {
  BestEncoder encoder(weights, starts);
  encoder.put_up_to(weights.size(), settings);
  return std::move(encoder).finish();
}

/// `fast` has no time to look at what Vela's encoders would make of larger streams.
constexpr std::size_t kAlwaysChecked = 1024;

/// A pass of the decoder is worth three bits.
constexpr Price kPosition = 3 * kBit / kChunkWeights;

constexpr BestSettings settings_of(Effort effort, Forms forms) noexcept {
  if (effort == Effort::fast) return {forms, 512, 32, kPosition, false};
  return {forms, 128, 24, kPosition, true};
}

/// What a stream must keep to: no more bytes and no more passes than the smaller of the streams that Vela's two
/// encoders make; where they are equally large, than the one that takes fewer passes.
class Limits {
 public:
  Limits(std::span<const std::int16_t> weights, const Starts& starts) : Limits(vela_costs(weights, starts)) {}

  bool too_large(const Cost& cost) const noexcept { return cost.bits > smaller_.bits; }
  bool too_slow(const Cost& cost) const noexcept { return cost.passes > smaller_.passes; }
  std::uint64_t most_passes() const noexcept { return smaller_.passes; }

  std::vector<std::uint8_t> encode_smaller(std::span<const std::int16_t> weights) const {
    return regor_is_smaller_ ? encode_regor(weights) : encode_reference(weights);
  }

 private:
  explicit Limits(const VelaCosts& costs)
      : regor_is_smaller_(std::pair(costs.regor.bits, costs.regor.passes) <
                          std::pair(costs.reference.bits, costs.reference.passes)),
        smaller_(regor_is_smaller_ ? costs.regor : costs.reference) {}

  bool regor_is_smaller_;
  Cost smaller_;
};

/// The smallest of several streams that keep the limits.
class Contest {
 public:
  Contest(std::span<const std::int16_t> weights, const Starts& starts, const Limits& limits)
      : weights_(weights), starts_(starts), limits_(limits) {}

  void enter(Encoded&& encoded) {
    last_ = encoded.cost();
    if (limits_.too_slow(last_) || limits_.too_large(last_)) return;
    if (is_open() || encoded.stream.size() < stream_.size()) stream_ = std::move(encoded.stream);
  }
  void enter(const BestSettings& settings) { enter(encode_with(weights_, starts_, settings)); }

  /// Searches again: with dearer passes where the stream entered last took too many, else with free ones.
  void enter_others(const BestSettings& settings) {
    if (limits_.too_slow(last_)) {
      enter_faster(settings);
    } else {
      BestSettings free = settings;
      free.position = 0;
      enter(free);
    }
  }

  bool is_open() const noexcept { return stream_.empty(); }
  std::vector<std::uint8_t> winner() && { return is_open() ? limits_.encode_smaller(weights_) : std::move(stream_); }

 private:
  /// Passes just dear enough to keep the limit; and that once more, behind as much of the stream as the limit allows
  /// with `settings`.
  void enter_faster(const BestSettings& settings) {
    const Cost slow = last_;
    BestSettings faster = settings;
    faster.search_slices = false;  // that search knows bits only
    for (const Price position : {4 * kPosition, 32 * kPosition}) {
      faster.position = position;
      enter(faster);
      if (!is_open() || limits_.too_large(last_)) break;  // fewer passes take no fewer bytes
    }
    if (is_open() || last_.passes >= slow.passes || last_.bits <= slow.bits) return;
    constexpr double kMargin = 0.95;  // passes are not spread evenly
    const double share = kMargin * static_cast<double>(limits_.most_passes() - last_.passes) /
                         static_cast<double>(slow.passes - last_.passes);
    if (share * static_cast<double>(last_.bits - slow.bits) < 8 * kStreamAlignmentBytes) return;
    const auto n_slow = static_cast<std::size_t>(share * static_cast<double>(weights_.size()));
    BestEncoder encoder(weights_, starts_);
    encoder.put_up_to(n_slow, settings);
    encoder.put_up_to(weights_.size(), faster);
    enter(std::move(encoder).finish());
  }

  std::span<const std::int16_t> weights_;
  const Starts& starts_;
  const Limits& limits_;
  std::vector<std::uint8_t> stream_;
  Cost last_;  ///< of the stream entered last, whether it kept the limits or not
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
  const bool is_checked = effort != Effort::fast || weights.size() <= kAlwaysChecked;
  const Starts starts = is_checked || may_have_local_palettes(weights) ? reference_section_starts(weights) : Starts{0};
  Encoded encoded = encode_with(weights, starts, settings);
  if (!is_checked) return std::move(encoded.stream);
  const Limits limits(weights, starts);
  Contest contest(weights, starts, limits);
  contest.enter(std::move(encoded));
  if (effort != Effort::fast && contest.is_open()) contest.enter_others(settings);
  if (effort == Effort::max) enter_more(contest, forms);
  return std::move(contest).winner();
}

}  // namespace weightmill::mlw
