#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <weightmill/model/graph.h>
#include <weightmill/model/packed.h>

namespace weightmill::verify {

/// The weights of a packed layer as the model has them, zero points subtracted, in OHWI order as the NPU runs them
/// (a transposed convolution flipped).
struct ModelWeights {
  std::array<int, 4> ohwi{};
  std::vector<std::int16_t> values;
  std::string problem;  ///< why the layer cannot be looked up in the model; empty if nothing is wrong
};

/// Looks up `layer` in `model`. Whatever does not fit together is said in `problem`.
ModelWeights weights_of(const PackedLayer& layer, const Model& model);

/// The biases of a packed layer as the model has them, one for each output channel; zeros where there is no tensor.
struct ModelBiases {
  std::vector<std::int64_t> values;
  std::string problem;
};
ModelBiases biases_of(const PackedLayer& layer, const Model& model);

/// The layer's tensor by its number, or nullptr.
const Tensor* tensor_of(const PackedLayer& layer, const Model& model, int number);

}  // namespace weightmill::verify
