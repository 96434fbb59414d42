#pragma once

#include <functional>
#include <optional>
#include <string>

#include "analysis.h"

namespace weightmill {

/// Whether a stream of one model may stand for a stream of another: normally that both decode to the same weights.
using StreamsMatch = std::function<bool(const Stream& before, const Stream& after)>;

/// Runs through the command streams of two models side by side. Returns nothing if each operation has the same opcode,
/// parameter and registers (but for addresses and lengths that follow the read-only tensor), and reads the same
/// weights, scales, constants, tables and copied bytes; else a sentence about the first difference. Throws: unsupported
/// if the operations read so much again and again that comparing it would take too long.
std::optional<std::string> first_difference(const Analysis& before, const Analysis& after, const StreamsMatch& match);

}  // namespace weightmill
