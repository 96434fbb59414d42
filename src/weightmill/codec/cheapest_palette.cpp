#include "cheapest_palette.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <span>

#include <weightmill/base/bits.h>

namespace weightmill::mlw {
namespace {

using IndexCounts = std::array<std::uint32_t, kCodeValues>;

/// The sums that prices are made of. Those of divisors with which the largest index cannot be coded are left out.
IndexSums sums_of(const IndexCounts& counts, unsigned top) noexcept {
  while (top > 0 && counts[top] == 0) --top;
  IndexSums sums;
  sums.largest = static_cast<std::uint16_t>(top);
  IndexCounts at_least;  // indices of this number or more
  std::uint32_t more = 0;
  for (unsigned index = top + 1; index-- > 0;) at_least[index] = more += counts[index];
  sums.n = more;
  for (unsigned d = 0; d < IndexSums::kShifts; ++d) {
    if (top >> d > WeightCode::kMaxQuotient) continue;
    for (unsigned index = 1u << d; index <= top; index += 1u << d) sums.quotients[d] += at_least[index];
  }
  for (unsigned d = 0; d + 1 < IndexSums::kShifts; ++d) sums.above[d] = 1u << d <= top ? at_least[1u << d] : 0;
  return sums;
}

unsigned widest_of(const CodedPalette& coded) noexcept {
  return coded.palette.size == 0 || coded.only_palette ? coded.palette.index_bits() : 0;
}

/// Chooses among all codes; `width` 0: not uncompressed.
void choose_code(const IndexSums& sums, unsigned width, Price position, CodedPalette& coded) noexcept {
  for (unsigned number = 0; number < WeightCode::kUncompressed; ++number) {
    const Price price = indices_price(sums, WeightCode(number), position);
    if (price < coded.price) coded.price = price, coded.code = WeightCode(number);
  }
  const Price price = width == 0 ? kUnusable : uncompressed_price(sums.n, width, position);
  if (price < coded.price) coded.price = price, coded.code = WeightCode::uncompressed();
}

/// The code values that occur, the most common first, and of equally common ones the larger first.
class CommonFirst {
 public:
  explicit CommonFirst(const CodeCounts& counts) {
    std::array<std::uint64_t, kCodeValues> ranks;
    std::fill(ranks.begin(), ranks.begin() + Palette::kMaxSize, 0);
    for (unsigned code = 0; code <= counts.top; ++code) {
      ranks[size_] = std::uint64_t{counts.of[code]} << 9 | code;
      size_ += counts.of[code] != 0 ? 1 : 0;
    }
    const auto n_sorted = static_cast<std::ptrdiff_t>(std::min<std::size_t>(size_, Palette::kMaxSize));
    const auto begin = ranks.begin(), end = begin + static_cast<std::ptrdiff_t>(size_);
    std::nth_element(begin, begin + n_sorted, end, std::greater{});
    std::sort(begin, begin + n_sorted, std::greater{});
    for (std::size_t i = 0; i < codes_.size(); ++i) codes_[i] = static_cast<std::uint16_t>(ranks[i] & kMaxCodeValue);
  }

  std::size_t size() const noexcept { return size_; }
  std::span<const std::uint16_t> first(std::size_t n) const noexcept { return {codes_.data(), n}; }

 private:
  std::array<std::uint16_t, Palette::kMaxSize> codes_;
  std::size_t size_ = 0;
};

/// Counts of the code values that a palette does not hold.
class DirectCounts {
 public:
  DirectCounts(const CodeCounts& counts, const Palette& palette) : top_(std::max(counts.top, kMinusZero)) {
    std::copy(counts.of.begin(), counts.of.begin() + top_ + 1, of_.begin());
    for (unsigned i = 0; i < palette.size; ++i) of_[palette.entries[i]] = 0;
    of_[kMinusZero] = of_[0];
    of_[0] = 0;
    while (top_ > 0 && of_[top_] == 0) --top_;
  }

  std::uint32_t operator[](unsigned code) const noexcept { return of_[code]; }
  unsigned top() const noexcept { return top_; }

 private:
  std::array<std::uint32_t, kCodeValues> of_;
  unsigned top_;
};

/// No index under the palette is larger.
unsigned top_index(const CodedPalette& coded, const DirectCounts& direct) noexcept {
  const Palette& palette = coded.palette;
  if (coded.only_palette) return palette.size - 1;
  return std::max(direct.top(), palette.direct_offset) + palette.size - palette.direct_offset;
}

/// Chooses the code for weights with these counts; `coded` has the palette.  Requires: top_index() <= kMaxCodeValue.
void choose_code(const CodeCounts& counts, const DirectCounts& direct, Price position, CodedPalette& coded) noexcept {
  const Palette& palette = coded.palette;
  const unsigned top = top_index(coded, direct);
  IndexCounts indices;
  std::fill(indices.begin(), indices.begin() + top + 1, 0);
  for (unsigned i = palette.size; i-- > 0;) indices[i] = counts.of[palette.entries[i]];
  if (palette.size == 2 && palette.entries[0] == palette.entries[1]) indices[1] = 0;
  for (unsigned code = palette.direct_offset; code <= direct.top(); ++code) {
    if (direct[code] != 0) indices[code + palette.size - palette.direct_offset] += direct[code];
  }
  choose_code(sums_of(indices, top), widest_of(coded), position, coded);
}

/// A palette that is being tried for a section.
class Trial {
 public:
  Trial(const CodeCounts& counts, std::span<const std::uint16_t> entries, bool only_palette, bool all_forms)
      : counts_(counts), coded_(with_entries(entries, only_palette)), direct_(counts, coded_.palette) {
    set_direct_offset(all_forms);
    const unsigned max_code = all_forms ? top_index(coded_, direct_) : std::max(direct_.top(), kMinusZero);
    coded_.palette.entry_bits = entry_bits(coded_.palette, max_code);
  }

  /// Unusable where an index would be too large.
  CodedPalette priced(const BestSettings& settings) {
    const Palette& palette = coded_.palette;
    if (top_index(coded_, direct_) > kMaxCodeValue) return coded_;
    choose_code(counts_, direct_, settings.position, coded_);
    coded_.price += kBit * palette.size * palette.entry_bits;
    return coded_;
  }

 private:
  static CodedPalette with_entries(std::span<const std::uint16_t> entries, bool only_palette) {
    CodedPalette coded;
    coded.only_palette = only_palette;
    Palette& palette = coded.palette;
    for (const std::uint16_t code : entries) palette.entries[palette.size++] = code;
    if (palette.size == 1) palette.entries[palette.size++] = 0;  // a size of 1 cannot be sent
    return coded;
  }

  void set_direct_offset(bool all_forms) {
    if (counts_.top == 0 && counts_.of[0] == 0) return;
    const unsigned top = all_forms ? direct_.top() : counts_.top;
    const auto is_absent = [&](unsigned code) { return (all_forms ? direct_[code] : counts_.of[code]) == 0; };
    unsigned offset = 0;
    while (offset < std::min(top, Palette::kMaxDirectOffset) && is_absent(offset)) ++offset;
    coded_.palette.direct_offset = coded_.only_palette && all_forms ? 0 : offset;
  }

  const CodeCounts& counts_;
  CodedPalette coded_;
  DirectCounts direct_;
};

/// Tries palettes of the most common code values: few sizes first, and those between where that looks good.
class PaletteSearch {
 public:
  PaletteSearch(const CodeCounts& counts, const BestSettings& settings)
      : counts_(counts), settings_(settings), best_(without_palette(counts, settings)) {}

  CodedPalette run() && {
    if (best_.price == 0 || is_hopeless()) return best_;
    const CommonFirst common(counts_);
    common_ = &common;
    const Price none = best_.price;
    const std::size_t largest = std::min<std::size_t>(common.size(), Palette::kMaxSize);
    const Price coarse = std::min({tried(largest), tried(4), tried(12)});
    if (coarse > none + none / kHopeless) return best_;
    for (const std::size_t size : {2u, 3u, 6u, 8u, 16u, 20u, 24u, 28u}) tried(size);
    return best_;
  }

 private:
  static constexpr Price kHopeless = 64;

  /// With Forms::proven entries push all other indices up: where these are many, nothing can make up for it.
  bool is_hopeless() const noexcept {
    return settings_.forms == Forms::proven && most_covered() * 4 < counts_.total() * 3;
  }

  /// No palette covers more weights than this. Counts are sorted only as far as their number of bits.
  std::uint64_t most_covered() const noexcept {
    std::array<std::uint32_t, 33> n_codes{}, n_weights{};
    for (unsigned code = 0; code <= counts_.top; ++code) {
      const auto width = static_cast<std::size_t>(std::bit_width(counts_.of[code]));
      ++n_codes[width];
      n_weights[width] += counts_.of[code];
    }
    std::uint64_t covered = 0;
    unsigned room = Palette::kMaxSize;
    for (std::size_t width = n_codes.size(); width-- > 1 && room != 0;) {
      const unsigned taken = std::min(room, n_codes[width]);
      covered += std::min(std::uint64_t{n_weights[width]}, std::uint64_t{taken} << width);
      room -= taken;
    }
    return covered;
  }

  Price tried(std::size_t size) {
    if (size > common_->size()) return kUnusable;
    const bool only = size == common_->size();
    const CodedPalette coded =
        Trial(counts_, common_->first(size), only, settings_.forms == Forms::all).priced(settings_);
    if (coded.price < best_.price) best_ = coded;
    return coded.price;
  }

  const CodeCounts& counts_;
  const BestSettings& settings_;
  const CommonFirst* common_ = nullptr;
  CodedPalette best_;
};

}  // namespace

CodeCounts::CodeCounts(const Histogram& histogram, bool zero_runs) noexcept {
  of[0] = zero_runs ? 0 : histogram[0];
  const int largest = histogram.largest_magnitude();
  for (int magnitude = 1; magnitude <= largest; ++magnitude) {
    of[fold(magnitude)] = histogram[magnitude];
    of[fold(-magnitude)] = histogram[-magnitude];
  }
  top = largest == 0 ? 0 : fold(-largest);
}

CodeCounts& CodeCounts::operator+=(const CodeCounts& other) noexcept {
  for (unsigned code = 0; code <= other.top; ++code) of[code] += other.of[code];
  top = std::max(top, other.top);
  return *this;
}

std::uint64_t CodeCounts::total() const noexcept {
  return std::accumulate(of.begin(), of.begin() + top + 1, std::uint64_t{0});
}

CodedPalette without_palette(const CodeCounts& counts, const BestSettings& settings) {
  return Trial(counts, {}, false, settings.forms == Forms::all).priced(settings);
}

CodedPalette cheapest_palette(const CodeCounts& counts, const BestSettings& settings) {
  return PaletteSearch(counts, settings).run();
}

WeightCode cheapest_code(const CodeCounts& counts, const CodedPalette& section, Price position, Price* price) {
  CodedPalette coded = section;
  coded.price = kUnusable;
  choose_code(counts, DirectCounts(counts, section.palette), position, coded);
  *price = coded.price;
  return coded.code;
}

PaletteChoice index_table(const CodedPalette& section) {
  PaletteChoice choice;
  choice.palette = section.palette;
  choice.only_palette = section.only_palette;
  fill_indices(choice, kMaxWeight);
  return choice;
}

}  // namespace weightmill::mlw
