#include "best_sections.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace weightmill::mlw {
namespace {

using RunPrices = std::array<Price, RunCode::kCount>;

/// One slice with a palette of its own: what a section grows from.
struct Draft {
  std::size_t begin, end;
  bool zero_runs;
  CodeCounts counts;
  RunPrices runs{};
  CodedPalette palette;
  Price price = 0;  ///< of everything, headers included

  bool has_palette() const noexcept { return palette.palette.size != 0; }
  bool only_zeros() const noexcept { return zero_runs && counts.top == 0; }
  RunCode run_code() const noexcept {
    if (!zero_runs) return RunCode::off();
    return RunCode(static_cast<unsigned>(std::min_element(runs.begin(), runs.end()) - runs.begin()));
  }
};

class Drafting {
 public:
  Drafting(std::span<const std::int16_t> weights, const BestSettings& settings)
      : weights_(weights), settings_(settings) {}

  /// Where zeros were to be counted, a palette may make it cheaper to code them after all.
  Draft draft(const Piece& piece) const {
    const auto weights = weights_.subspan(piece.begin, piece.end - piece.begin);
    const auto is_zero = [](std::int16_t weight) { return weight == 0; };
    if (piece.zero_runs && std::all_of(weights.begin(), weights.end(), is_zero)) return zeros(piece);
    Histogram histogram;
    histogram.count(weights);
    Draft draft{piece.begin, piece.end, piece.zero_runs, CodeCounts(histogram, piece.zero_runs), {}, {}, 0};
    if (piece.zero_runs) draft.runs = runs_price(weights);
    price(draft);
    if (piece.zero_runs)
      take_if_cheaper(draft, Draft{piece.begin, piece.end, false, CodeCounts(histogram, false), {}, {}, 0});
    return draft;
  }

  /// Both in one slice; the run that ends the first and the one that begins the second are one.
  Draft joined(const Draft& first, const Draft& second) const {
    Draft both = first;
    both.end = second.end;
    both.counts += second.counts;
    for (unsigned d = 0; d < RunCode::kCount && both.zero_runs; ++d) both.runs[d] += second.runs[d] - run_end(d);
    price(both);
    return both;
  }

 private:
  Price run_end(unsigned divisor) const noexcept { return kBit * (1 + divisor) + settings_.run_bit(); }

  Draft zeros(const Piece& piece) const {
    Draft draft{piece.begin, piece.end, true, {}, {}, {}, 0};
    draft.palette.price = 0;
    for (unsigned d = 0; d < RunCode::kCount; ++d) {
      const auto quotient = static_cast<Price>((piece.end - piece.begin) >> d);
      draft.runs[d] = quotient * (kBit + settings_.run_bit()) + run_end(d);
    }
    add_headers(draft);
    return draft;
  }

  RunPrices runs_price(std::span<const std::int16_t> weights) const {
    std::array<std::uint64_t, RunCode::kCount> quotients{};
    std::uint64_t n_runs = 1;
    std::size_t run = 0;
    const auto close = [&] {
      for (unsigned d = 0; d < RunCode::kCount; ++d) quotients[d] += run >> d;
      run = 0;
    };
    for (const std::int16_t weight : weights) {
      if (weight == 0) {
        ++run;
      } else {
        ++n_runs;
        close();
      }
    }
    close();
    RunPrices prices;
    for (unsigned d = 0; d < RunCode::kCount; ++d) {
      prices[d] =
          static_cast<Price>(quotients[d]) * (kBit + settings_.run_bit()) + static_cast<Price>(n_runs) * run_end(d);
    }
    return prices;
  }

  void price(Draft& draft) const {
    draft.palette = cheapest_palette(draft.counts, settings_.for_indices(draft.zero_runs));
    add_headers(draft);
  }

  /// And the runs.
  void add_headers(Draft& draft) const {
    draft.price = draft.palette.price + settings_.slice_price() + BestSettings::kPaletteHeaderBits * kBit;
    if (!draft.zero_runs) return;
    draft.price += *std::min_element(draft.runs.begin(), draft.runs.end()) + BestSettings::kFillerBits * kBit;
  }

  void take_if_cheaper(Draft& draft, Draft&& other) const {
    price(other);
    if (other.price < draft.price) draft = std::move(other);
  }

  std::span<const std::int16_t> weights_;
  const BestSettings& settings_;
};

/// Two slices without entries can share a section as they are; a palette may be worth more to both than to one.
bool worth_joining(const Draft& first, const Draft& second) noexcept {
  if (first.zero_runs != second.zero_runs) return false;
  return first.has_palette() || second.has_palette() || first.only_zeros() || second.only_zeros();
}

/// Joins neighbours from left to right where that is cheaper; false if nothing was.
bool join_neighbours(std::vector<Draft>& drafts, const Drafting& drafting) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    if (n != 0 && worth_joining(drafts[n - 1], drafts[i])) {
      Draft both = drafting.joined(drafts[n - 1], drafts[i]);
      if (both.price <= drafts[n - 1].price + drafts[i].price) {
        drafts[n - 1] = std::move(both);
        continue;
      }
    }
    if (n != i) drafts[n] = std::move(drafts[i]);
    ++n;
  }
  const bool any = n != drafts.size();
  drafts.erase(drafts.begin() + static_cast<std::ptrdiff_t>(n), drafts.end());
  return any;
}

/// Slices that share a palette.
class Group {
 public:
  Group(const Draft& first, const BestSettings& settings)
      : settings_(settings.for_indices(first.zero_runs)),
        counts_(first.counts),
        shared_(first.palette),
        price_(first.palette.price),
        drafts_{&first} {}

  /// Takes another slice if neither has entries and sharing a header pays.
  bool take(const Draft& next) {
    const Draft& last = *drafts_.back();
    if (last.zero_runs != next.zero_runs || last.only_zeros() || next.only_zeros()) return false;
    if (shared_.palette.size != 0 || next.has_palette()) return false;
    return has_same_indices(next) ? add(next) : add_if_cheaper(next);
  }

  PlannedSection planned() {
    take_palette();
    const Draft &first = *drafts_.front(), &last = *drafts_.back();
    PlannedSection section{first.begin, last.end, first.zero_runs, first.only_zeros(), shared_, {}};
    for (const Draft* draft : drafts_) {
      const std::uint64_t n = section.only_zeros ? 1 : draft->counts.total();
      section.slices.push_back({static_cast<std::size_t>(n), code_of(*draft), draft->run_code()});
    }
    return section;
  }

 private:
  /// Whether all indices, and their widths, stay what they are.
  bool has_same_indices(const Draft& next) const noexcept {
    const Palette &shared = shared_.palette, &other = next.palette.palette;
    return shared.direct_offset == other.direct_offset && shared.entry_bits == other.entry_bits;
  }

  bool add(const Draft& next) {
    drafts_.push_back(&next);
    counts_ += next.counts;
    price_ += next.palette.price;
    return true;
  }

  bool add_if_cheaper(const Draft& next) {
    Group both = *this;
    both.add(next);
    both.shared_ = without_palette(both.counts_, settings_);
    both.price_ = both.price_under(both.shared_);
    if (both.price_ > price_ + next.palette.price + BestSettings::kPaletteHeaderBits * kBit) return false;
    *this = std::move(both);
    return true;
  }

  WeightCode code_of(const Draft& draft) const {
    const bool own = drafts_.size() == 1 || (shared_.palette.size == 0 && has_same_indices(draft));
    if (own) return draft.palette.code;
    Price ignored;
    return cheapest_code(draft.counts, shared_, settings_.position, &ignored);
  }

  Price price_under(const CodedPalette& shared) const {
    Price sum = kBit * shared.palette.size * shared.palette.entry_bits;
    for (const Draft* draft : drafts_) {
      Price price;
      cheapest_code(draft->counts, shared, settings_.position, &price);
      sum += price;
    }
    return sum;
  }

  /// Entries that are too dear for each slice may pay for all of them.
  void take_palette() {
    if (drafts_.size() == 1) return;
    const CodedPalette palette = cheapest_palette(counts_, settings_);
    if (palette.palette.size == 0) return;
    const Price price = price_under(palette);
    if (price < price_) shared_ = palette, price_ = price;
  }

  BestSettings settings_;
  CodeCounts counts_;
  CodedPalette shared_;
  Price price_;
  std::vector<const Draft*> drafts_;
};

}  // namespace

std::vector<PlannedSection> plan_sections(std::span<const std::int16_t> weights, std::span<const Piece> pieces,
                                          const BestSettings& settings) {
  const Drafting drafting(weights, settings);
  std::vector<Draft> drafts;
  drafts.reserve(pieces.size());
  for (const Piece& piece : pieces) drafts.push_back(drafting.draft(piece));
  constexpr int kRounds = 3;
  for (int round = 0; round < kRounds && join_neighbours(drafts, drafting); ++round) {
  }
  std::vector<PlannedSection> sections;
  for (std::size_t i = 0; i < drafts.size();) {
    Group group(drafts[i], settings);
    while (++i < drafts.size() && group.take(drafts[i])) {
    }
    sections.push_back(group.planned());
  }
  return sections;
}

}  // namespace weightmill::mlw
