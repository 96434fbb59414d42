#pragma once

#include <vector>

#include "findings.h"
#include "model_weights.h"

namespace weightmill::verify {

/// Compares what `layer` states of its operator (kind, name, tensors, stride, dilation, zero points, scales) with the
/// model.
void check_against_node(const PackedLayer& layer, const Model& model, Findings& findings);

/// A finding for each weight tensor of the model that is neither packed nor listed as left.
std::vector<Finding> check_completeness(const Packed& packed, const Model& model);

}  // namespace weightmill::verify
