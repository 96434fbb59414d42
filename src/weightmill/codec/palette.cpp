#include "palette.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <weightmill/base/bits.h>

namespace weightmill::mlw {
namespace {

/// A code value that occurs, and below its count: the larger number comes first in the palette, more common ones before
/// others and of equally common ones the larger code value.
using Rank = std::uint64_t;
constexpr unsigned kCodeBits = 9;
constexpr Rank rank_of(std::uint32_t count, unsigned code) noexcept { return Rank{count} << kCodeBits | code; }
constexpr std::uint64_t count_of(Rank rank) noexcept { return rank >> kCodeBits; }
constexpr std::uint16_t code_of(Rank rank) noexcept { return static_cast<std::uint16_t>(rank & kMaxCodeValue); }

/// The code values that occur, in rising order.
class Codes {
 public:
  Codes(const Histogram& histogram, bool zero_runs) {
    if (!zero_runs) add(histogram[0], 0);
    const int largest = histogram.largest_magnitude();
    for (int magnitude = 1; magnitude <= largest; ++magnitude) {
      add(histogram[magnitude], fold(magnitude));
      add(histogram[-magnitude], fold(-magnitude));
    }
  }

  std::span<const Rank> ranks() const noexcept { return {ranks_.data(), size_}; }
  std::uint64_t total() const noexcept { return total_; }

 private:
  void add(std::uint32_t count, unsigned code) noexcept {
    ranks_[size_] = rank_of(count, code);
    size_ += count != 0 ? 1 : 0;
    total_ += count;
  }

  std::array<Rank, kCodeValues> ranks_;
  std::size_t size_ = 0;
  std::uint64_t total_ = 0;
};

/// A palette moves all direct indices up by its size: the largest must stay a legal index.
std::size_t palette_limit(std::span<const Rank> codes) noexcept {
  if (codes.size() <= Palette::kMaxSize) return codes.size();
  const unsigned room = kMaxCodeValue - code_of(codes.back());
  return room == 1 ? 0 : std::min(Palette::kMaxSize, room);
}

/// The first of `codes` in the palette's order.
std::span<const Rank> most_common(std::span<const Rank> codes, std::array<Rank, kCodeValues>& sorted) {
  const auto limit = static_cast<std::ptrdiff_t>(palette_limit(codes));
  const auto end = std::copy(codes.begin(), codes.end(), sorted.begin());
  std::nth_element(sorted.begin(), sorted.begin() + limit, end, std::greater{});
  std::sort(sorted.begin(), sorted.begin() + limit, std::greater{});
  return std::span(sorted).first(static_cast<std::size_t>(limit));
}

/// Fills `palette` with the most common codes if they cover enough of the section, else leaves it without entries.
void take_entries(Palette& palette, const Codes& codes, Coverage coverage) {
  std::array<Rank, kCodeValues> sorted;
  const std::span<const Rank> candidates = most_common(codes.ranks(), sorted);
  const auto add_count = [](std::uint64_t sum, Rank rank) { return sum + count_of(rank); };
  const std::uint64_t covered = std::accumulate(candidates.begin(), candidates.end(), std::uint64_t{0}, add_count);
  const std::uint64_t half = codes.total() / 2;
  const bool used = coverage == Coverage::more_than_half ? covered > half : covered >= half;
  if (!used) return;
  for (const Rank rank : candidates) palette.entries[palette.size++] = code_of(rank);
  if (palette.size == 1) palette.entries[palette.size++] = 0;  // a size of 1 cannot be sent
}

}  // namespace

unsigned entry_bits(const Palette& palette, unsigned max_code) noexcept {
  const auto largest =
      palette.size == 0 ? max_code : *std::max_element(palette.entries.begin(), palette.entries.begin() + palette.size);
  return std::max(2u, index_bits(std::uint64_t{largest} + 1));
}

void fill_indices(PaletteChoice& choice, int largest_magnitude) {
  const Palette& palette = choice.palette;
  for (int weight = -largest_magnitude; weight <= largest_magnitude; ++weight) {
    const unsigned code = weight == 0 ? kMinusZero : fold(weight);
    choice.index_of[static_cast<unsigned>(weight + kMaxWeight)] =
        static_cast<std::uint16_t>(code + palette.size - palette.direct_offset);
  }
  for (unsigned i = palette.size; i-- > 0;) {
    choice.index_of[static_cast<unsigned>(unfold(palette.entries[i]) + kMaxWeight)] = static_cast<std::uint16_t>(i);
  }
}

unsigned Palette::index_bits() const noexcept { return size == 0 ? entry_bits : weightmill::index_bits(size); }

int Histogram::largest_magnitude() const noexcept {
  int magnitude = kMaxWeight;
  while (magnitude > 0 && ((*this)[magnitude] | (*this)[-magnitude]) == 0) --magnitude;
  return magnitude;
}

void Histogram::count(std::span<const std::int16_t> weights) noexcept {
  // Equal neighbours must not wait for each other's count to come back from memory: they go to different tables.
  constexpr std::size_t kTables = 4;
  constexpr std::size_t kWorthIt = 1024;
  std::size_t i = 0;
  if (weights.size() >= kWorthIt) {
    std::array<Histogram, kTables - 1> others;
    for (; i + kTables <= weights.size(); i += kTables) {
      ++(*this)[weights[i]];
      for (std::size_t k = 1; k < kTables; ++k) ++others[k - 1][weights[i + k]];
    }
    for (const Histogram& other : others) {
      for (std::size_t bin = 0; bin < counts_.size(); ++bin) counts_[bin] += other.counts_[bin];
    }
  }
  for (; i < weights.size(); ++i) ++(*this)[weights[i]];
}

PaletteChoice choose_palette(const Histogram& histogram, bool zero_runs, Coverage coverage) {
  const Codes found(histogram, zero_runs);
  const std::span<const Rank> codes = found.ranks();
  PaletteChoice choice;
  choice.only_zeros = codes.empty();
  choice.only_palette = !codes.empty() && codes.size() <= Palette::kMaxSize;
  Palette& palette = choice.palette;
  if (!codes.empty()) {
    palette.direct_offset = std::min<unsigned>(code_of(codes.front()), Palette::kMaxDirectOffset);
    take_entries(palette, found, coverage);
  }
  palette.entry_bits = entry_bits(palette, codes.empty() ? 0 : code_of(codes.back()));
  fill_indices(choice, histogram.largest_magnitude());
  return choice;
}

}  // namespace weightmill::mlw
