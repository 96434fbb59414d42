#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cheapest_palette.h"
#include "pieces.h"
#include "price.h"

namespace weightmill::mlw {

/// A part of a section with a code of its own.
struct PlannedSlice {
  std::size_t n_indices;
  WeightCode code;
  RunCode run_code;
};

/// Weights [begin, end) with one palette.
struct PlannedSection {
  std::size_t begin, end;
  bool zero_runs;
  bool only_zeros;  ///< then one of them is coded, and the rest is a run
  CodedPalette palette;
  std::vector<PlannedSlice> slices;
};

/// Gives each piece a palette, or none, and joins neighbours where one palette for both is cheaper.
/// [docs/weight-stream.md §18]
std::vector<PlannedSection> plan_sections(std::span<const std::int16_t> weights, std::span<const Piece> pieces,
                                          const BestSettings& settings);

}  // namespace weightmill::mlw
