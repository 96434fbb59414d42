#pragma once

#include <cstdint>
#include <span>

#include "golomb_rice.h"

namespace weightmill::mlw {

/// The cheapest way to code all indices when a change of code costs `switch_bits`, at most 40. `uncompressed`: price of
/// an index in uncompressed mode.  Requires: at least one index; indices below 512.  [docs/weight-stream.md §13]
WeightSegments cheapest_weight_segments(std::span<const std::uint16_t> indices, unsigned uncompressed,
                                        std::int8_t switch_bits);

/// The segments that the encoder `reference` finds: the cheapest way to code all values when a change of code costs 40
/// bits. `uncompressed`: price of an index in uncompressed mode.  Requires: at least one value; indices below 512.
/// [docs/weight-stream.md §13]
WeightSegments reference_weight_segments(std::span<const std::uint16_t> indices, unsigned uncompressed);

/// The same for zero runs. Where a weight segment ends a new slice starts anyway, and a change is free.
RunSegments reference_run_segments(std::span<const std::uint32_t> runs, const WeightSegments& weight_segments);

/// The segments that the encoder `regor` finds in one forward pass.  [docs/weight-stream.md §14]
WeightSegments regor_weight_segments(std::span<const std::uint16_t> indices, unsigned uncompressed);
RunSegments regor_run_segments(std::span<const std::uint32_t> runs);

}  // namespace weightmill::mlw
