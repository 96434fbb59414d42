#include "palette.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <weightmill/base/bits.h>

namespace weightmill::mlw {
namespace {

/// Code values that occur, each with its count.
struct CodeCount {
  std::uint32_t count;
  std::uint16_t code;
};

/// The counts by code value, those that occur only, in rising order of the code value.
std::vector<CodeCount> count_codes(const Histogram& histogram, bool zero_runs) {
  std::vector<CodeCount> codes;
  codes.reserve(kCodeValues);
  const auto add = [&](int weight) {
    if (histogram[weight] != 0) codes.push_back({histogram[weight], static_cast<std::uint16_t>(fold(weight))});
  };
  if (!zero_runs) add(0);
  for (int magnitude = 1; magnitude <= kMaxWeight; ++magnitude) {
    add(magnitude);
    add(-magnitude);
  }
  return codes;
}

/// More common first; of equally common ones the larger code value.
bool comes_first(const CodeCount& a, const CodeCount& b) noexcept {
  return a.count != b.count ? a.count > b.count : a.code > b.code;
}

/// A palette moves all direct indices up by its size: the largest must stay a legal index.
unsigned palette_limit(const std::vector<CodeCount>& codes) noexcept {
  if (codes.size() <= Palette::kMaxSize) return Palette::kMaxSize;
  const unsigned room = kMaxCodeValue - codes.back().code;
  return room == 1 ? 0 : std::min(Palette::kMaxSize, room);
}

/// Fills `palette` with the most common codes if they cover enough of the section, else leaves it without entries.
void take_entries(Palette& palette, const std::vector<CodeCount>& codes, Coverage coverage) {
  std::array<CodeCount, Palette::kMaxSize> most_common;
  const auto end = std::partial_sort_copy(codes.begin(), codes.end(), most_common.begin(),
                                          most_common.begin() + palette_limit(codes), comes_first);
  const auto sum = [](std::uint64_t total, const CodeCount& code) { return total + code.count; };
  const std::uint64_t covered = std::accumulate(most_common.begin(), end, std::uint64_t{0}, sum);
  const std::uint64_t half = std::accumulate(codes.begin(), codes.end(), std::uint64_t{0}, sum) / 2;
  const bool used = coverage == Coverage::more_than_half ? covered > half : covered >= half;
  if (!used) return;
  for (auto code = most_common.begin(); code != end; ++code) palette.entries[palette.size++] = code->code;
  if (palette.size == 1) palette.entries[palette.size++] = 0;  // a size of 1 cannot be sent
}

/// The narrowest width, from 2 bits on, for the largest code value that will be sent with it.
unsigned entry_bits(const Palette& palette, unsigned max_code) noexcept {
  const auto largest = palette.size == 0 ? max_code : *std::max_element(palette.entries.begin(), palette.entries.begin() + palette.size);
  return std::max(2u, index_bits(std::uint64_t{largest} + 1));
}

void fill_indices(PaletteChoice& choice) {
  const Palette& palette = choice.palette;
  for (int weight = -kMaxWeight; weight <= kMaxWeight; ++weight) {
    const unsigned code = weight == 0 ? 1 : fold(weight);  // a zero outside the palette goes as "minus zero"
    choice.index_of[static_cast<unsigned>(weight + kMaxWeight)] =
        static_cast<std::uint16_t>(code + palette.size - palette.direct_offset);
  }
  for (unsigned i = palette.size; i-- > 0;) {
    choice.index_of[static_cast<unsigned>(unfold(palette.entries[i]) + kMaxWeight)] = static_cast<std::uint16_t>(i);
  }
}

}  // namespace

unsigned Palette::index_bits() const noexcept { return size == 0 ? entry_bits : weightmill::index_bits(size); }

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
  const std::vector<CodeCount> codes = count_codes(histogram, zero_runs);
  PaletteChoice choice;
  choice.only_zeros = codes.empty();
  choice.only_palette = !codes.empty() && codes.size() <= Palette::kMaxSize;
  Palette& palette = choice.palette;
  if (!codes.empty()) {
    palette.direct_offset = std::min<unsigned>(codes.front().code, Palette::kMaxDirectOffset);
    take_entries(palette, codes, coverage);
  }
  palette.entry_bits = entry_bits(palette, codes.empty() ? 0 : codes.back().code);
  fill_indices(choice);
  return choice;
}

}  // namespace weightmill::mlw
