#pragma once

#include <vector>

#include <weightmill/model/packed.h>
#include "layer_source.h"
#include "pack.h"

namespace weightmill {

/// One way to lay a layer's weights out: a format with its order and the streams it consists of, not yet coded.
struct Candidate {
  StreamFormat format = StreamFormat::standard;
  Traversal traversal = Traversal::depth_first;
  BlockShape ofm_ublock;
  int ofm_block_depth = 0;
  int ifm_block_depth = 0;
  std::vector<DepthSlice> slices;  ///< without offsets and sizes
};

/// All ways that the operator, its weights and `options` allow, the plainest first. At least one.
/// Throws: bad_request if an option makes no sense for the accelerator.
std::vector<Candidate> plan_layer(const LayerSource& source, const WeightVolume& weights,
                                  const Accelerator& accelerator, const PackOptions& options);

/// Biases, multipliers and shifts of `source` and their records, written into `layer`.
/// Throws: unsupported or bad_request if one does not fit its record (names the channel).
void add_records(PackedLayer& layer, const LayerSource& source, const Accelerator& accelerator,
                 const PackOptions& options);

}  // namespace weightmill
