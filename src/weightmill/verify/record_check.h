#pragma once

#include "findings.h"
#include "model_weights.h"

namespace weightmill::verify {

/// Parses the scale-and-bias records of `layer` and compares each with what the layer states and, where `model` is given,
/// with the model's biases and scales.
void check_records(const PackedLayer& layer, const Model* model, LayerCheck& check, Findings& findings);

}  // namespace weightmill::verify
