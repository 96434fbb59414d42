#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "analysis.h"

namespace weightmill {

/// A stream that was decoded and found to be what its operations ask for.
struct DecodedStream {
  std::vector<std::int16_t> weights;  ///< in the order of the stream, filling included
  std::uint64_t passes = 0;           ///< of the NPU's decoding loop; 0 for the fast format
};

/// Throws: bad_file if the stream does not decode, if other bytes than filling follow it, or if its operation's
/// geometry asks for another number of weights (names the operator, the word and the stream).
DecodedStream decode_stream(const Analysis& analysis, const Stream& stream);

/// Whether both decode to the same weights. Throws: as decode_stream().
bool same_weights(const Analysis& before, const Stream& a, const Analysis& after, const Stream& b);

/// The stream without filling that the NPU does not need: the shortest beginning, in whole 16 bytes, that holds the
/// same.
std::span<const std::uint8_t> without_filling(std::span<const std::uint8_t> stream);

}  // namespace weightmill
