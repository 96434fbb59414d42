#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codec.h"
#include "cost.h"
#include "palette.h"

namespace weightmill::mlw {

/// The encoders behind encode(), for weights that were checked.  Requires: not empty, each in [-255, 255].
std::vector<std::uint8_t> encode_reference(std::span<const std::int16_t> weights);  ///< docs/weight-stream.md §10-15
std::vector<std::uint8_t> encode_regor(std::span<const std::int16_t> weights);      ///< docs/weight-stream.md §14-15

/// `fast`, `best` or `max`.  [docs/weight-stream.md §16-19]
std::vector<std::uint8_t> encode_small(std::span<const std::int16_t> weights, Effort effort, Forms forms);

/// Whether zeros are counted between the other weights: where they are more than four times as common as any other one.
bool reference_wants_zero_runs(const Histogram& histogram) noexcept;
/// Where at least half of them stand in runs and they are more than five times as common as any other weight.
bool regor_wants_zero_runs(std::span<const std::int16_t> weights, const Histogram& histogram) noexcept;

inline constexpr std::size_t kRegorSectionWeights = 131072;

/// What the streams of encode_reference() and encode_regor() take, without making them. `starts`: as
/// reference_section_starts() finds them.
Cost reference_cost(std::span<const std::int16_t> weights, std::span<const std::size_t> starts);
Cost regor_cost(std::span<const std::int16_t> weights);

struct VelaCosts {
  Cost reference, regor;
};
/// Both, with what they have in common done once.
VelaCosts vela_costs(std::span<const std::int16_t> weights, std::span<const std::size_t> starts);

}  // namespace weightmill::mlw
