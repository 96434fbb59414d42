#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weightmill::mlw {

/// Where the encoder `reference` starts a new palette: strictly rising positions, the first 0. Section k is
/// weights[starts[k], starts[k + 1]).  Requires: weights in [-255, 255].  [docs/weight-stream.md §10]
std::vector<std::size_t> reference_section_starts(std::span<const std::int16_t> weights);

}  // namespace weightmill::mlw
