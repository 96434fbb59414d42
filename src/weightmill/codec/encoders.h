#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weightmill::mlw {

/// The encoders behind encode(), for weights that were checked.  Requires: not empty, each in [-255, 255].
std::vector<std::uint8_t> encode_reference(std::span<const std::int16_t> weights);  ///< docs/weight-stream.md §10-15
std::vector<std::uint8_t> encode_regor(std::span<const std::int16_t> weights);      ///< docs/weight-stream.md §14-15

}  // namespace weightmill::mlw
