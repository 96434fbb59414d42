#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "code_value.h"

namespace weightmill::mlw {

/// What turns an index into a weight: index i is entry i, or behind the entries code value i - size + direct_offset.
/// [docs/weight-stream.md §3]
struct Palette {
  static constexpr unsigned kMaxSize = 32;
  static constexpr unsigned kMaxDirectOffset = 31;

  std::array<std::uint16_t, kMaxSize> entries{};  ///< code values; `size` of them count
  unsigned size = 0;                              ///< 0 or 2..32
  unsigned direct_offset = 0;                     ///< 0..31
  unsigned entry_bits = 2;  ///< 2..9: of an entry, and of a plain index where there are no entries

  /// Bits of an index in uncompressed mode.
  unsigned index_bits() const noexcept;
};

/// How often each weight occurs in a section: count(w) for -255 <= w <= 255.
class Histogram {
 public:
  std::uint32_t& operator[](int weight) noexcept { return counts_[static_cast<unsigned>(weight + kMaxWeight)]; }
  std::uint32_t operator[](int weight) const noexcept { return counts_[static_cast<unsigned>(weight + kMaxWeight)]; }
  void count(std::span<const std::int16_t> weights) noexcept;
  /// Of the weights that occur; 0 if there is none but 0.
  int largest_magnitude() const noexcept;

 private:
  std::array<std::uint32_t, 2 * kMaxWeight + 1> counts_{};
};

/// A palette as the encoders `reference` and `regor` choose it, and what it does to the section's weights.
struct PaletteChoice {
  Palette palette;
  bool only_palette = false;  ///< 1 to 32 values are to be coded, so that no index lies behind the entries
  bool only_zeros = false;    ///< zero runs are on and there is no other weight

  /// Index of each weight that occurs: index_of[weight + kMaxWeight].
  std::array<std::uint16_t, 2 * kMaxWeight + 1> index_of{};
};

/// Fills choice.index_of by choice.palette, for all weights up to this magnitude.
void fill_indices(PaletteChoice& choice, int largest_magnitude);

/// The narrowest width, from 2 bits on, for the largest entry, or where there are none for `max_code`, the largest plain
/// index.
unsigned entry_bits(const Palette& palette, unsigned max_code) noexcept;

/// When half of the weights or more are in the 32 most common values, the palette is worth sending. The encoders differ
/// in what exactly half means.
enum class Coverage { more_than_half, at_least_half };

/// Chooses the palette of one section. `zero_runs`: zeros are counted between the weights rather than coded as weights.
/// [docs/weight-stream.md §11]
PaletteChoice choose_palette(const Histogram& histogram, bool zero_runs, Coverage coverage);

}  // namespace weightmill::mlw
