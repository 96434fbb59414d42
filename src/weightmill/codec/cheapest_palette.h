#pragma once

#include <array>
#include <cstdint>

#include "code_value.h"
#include "palette.h"
#include "price.h"

namespace weightmill::mlw {

/// How often each code value is to be coded in some weights.
struct CodeCounts {
  std::array<std::uint32_t, kCodeValues> of{};
  unsigned top = 0;  ///< no larger code value occurs

  CodeCounts() = default;
  /// Without zeros where they are counted in runs.
  CodeCounts(const Histogram& histogram, bool zero_runs) noexcept;
  CodeCounts& operator+=(const CodeCounts& other) noexcept;
  std::uint64_t total() const noexcept;
};

/// A palette, and the cheapest code for weights that share it.
struct CodedPalette {
  Palette palette;
  bool only_palette = false;  ///< no index lies behind the entries
  WeightCode code = WeightCode::plain(0);
  Price price = kUnusable;  ///< of the indices and the palette's entries; headers aside
};

/// The cheapest palette for weights with these counts, or none, which gives a Palette of size 0. With Forms::proven the
/// direct offset skips only code values that do not occur, with Forms::all also those that the palette holds.
/// [docs/weight-stream.md §18]
CodedPalette cheapest_palette(const CodeCounts& counts, const BestSettings& settings);

/// No palette; `widest`: counts of all weights that share the slice's section.
CodedPalette without_palette(const CodeCounts& counts, const BestSettings& settings);

/// The cheapest code for weights with these counts under the palette of a section.
WeightCode cheapest_code(const CodeCounts& counts, const CodedPalette& section, Price position, Price* price);

/// The table that turns weights into indices.
PaletteChoice index_table(const CodedPalette& section);

}  // namespace weightmill::mlw
