#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <weightmill/model/graph.h>
#include <weightmill/model/packed.h>
#include "weight_volume.h"

namespace weightmill {

/// A weight matrix that an operator of the model multiplies its feature map with, and all that packing it needs.
struct LayerSource {
  PackedLayer layer;                ///< "where it comes from" and "what was packed" are filled in
  const Tensor* weights = nullptr;  ///< of the model
  bool depthwise_layout = false;    ///< the tensor is [1, H, W, C], else [O, H, W, I] or [O, I]
  std::vector<std::int64_t> bias;   ///< O; zeros where the operator has none
  bool bias_is_64_bit = false;
  BlockShape ofm;  ///< 0 where the model does not say
};

using FoundLayer = std::variant<LayerSource, NotPacked>;

/// All weight-bearing operators of `model` in its order; LSTMs and SVDFs matrix by matrix. Those that an Ethos-U cannot
/// take weights of are NotPacked with the reason.
/// `rule`: under `vela5` a tensor without quantization has scale 1, under the others that is a reason not to pack.
/// Throws: bad_file if tensor numbers lie outside the subgraph or a constant has fewer bytes than its shape takes.
std::vector<FoundLayer> find_layers(const Model& model, ScalingRule rule);

/// The weights of a layer with the memory that had to be made for them, if any: 4-bit weights widened, 16-bit weights
/// and zero points of single channels subtracted.
struct LayerWeights {
  WeightVolume volume;
  std::shared_ptr<const std::vector<std::int8_t>> widened;
  std::shared_ptr<const std::vector<std::int16_t>> subtracted;
};
LayerWeights weights_of(const LayerSource& source);

}  // namespace weightmill
