#pragma once

#include <span>

#include "findings.h"
#include "model_weights.h"

namespace weightmill::verify {

/// Decodes the streams of `layer`, whose bytes are `blob`, and compares each weight with `model` and each padding with
/// zero. `model` may be nullptr: then only the streams' own statements are checked.
void check_streams(const PackedLayer& layer, std::span<const std::uint8_t> blob, const ModelWeights* model,
                   LayerCheck& check, Findings& findings);

}  // namespace weightmill::verify
