#pragma once

#include <cstdint>
#include <span>

namespace weightmill::mlw {

/// Throws: bad_request if there are more weights than any decoder takes; if a weight is outside [-255, 255] (names the
/// first such index and its value).
void check_weights(std::span<const std::int16_t> weights);

}  // namespace weightmill::mlw
