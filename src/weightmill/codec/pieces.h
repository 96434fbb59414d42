#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "price.h"

namespace weightmill::mlw {

/// Weights [begin, end) that are coded alike.
struct Piece {
  std::size_t begin, end;
  bool zero_runs;  ///< zeros are counted between the other weights
};

/// Cuts `weights` where a change of code, or of zero-run mode, pays: the cheapest way through blocks of weights, each
/// in one of 72 codes, as long as no palette is used. The pieces follow each other and cover everything.
/// Requires: 1 to 2^19 weights.  [docs/weight-stream.md §17]
std::vector<Piece> find_pieces(std::span<const std::int16_t> weights, const BestSettings& settings);

}  // namespace weightmill::mlw
