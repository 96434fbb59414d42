#pragma once

#include <cstdint>

#include "payload.h"
#include "walk.h"

namespace weightmill {

/// How many weights a stream must decode to.
struct WeightCount {
  std::uint64_t least = 0;
  bool is_exact = false;  ///< U55, U65: `least` is the count. U85: a bound, and the count is a multiple of 4 channels

  bool allows(std::uint64_t count) const { return is_exact ? count == least : count >= least && count % 4 == 0; }
};

/// What the operation's geometry asks of the stream of one core (U55, U65) or weight decoder (U85).
/// [docs/compiled-models.md §6]
WeightCount expected_weights(const Payload& payload, const Registers& registers, Opcode opcode, unsigned core);

}  // namespace weightmill
