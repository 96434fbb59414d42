#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <weightmill/model/diagnostic.h>
#include <weightmill/model/shape.h>

namespace weightmill {

/// Weights in integers for a layer whose activations stay bfloat16 or float32: real = weight * renorm of its lane.
///
/// A lane is a group of `group_size` consecutive rows (taps and input channels, in the order of the weights) of one
/// output channel; the last group of a channel may be shorter. Lane (r / group_size, c) is at r / group_size * C + c.
struct QuantizedWeights {
  unsigned bits = 8;                       ///< 4 or 8
  Shape weight_shape;                      ///< as QuantizedConv
  std::size_t group_size = 0;              ///< rows; all rows of a channel where scales are per channel or per tensor
  bool per_channel = true;                 ///< false: one lane for the whole tensor
  std::vector<std::int8_t> weight;         ///< row-major, one value a byte; in [-127, 127] or [-7, 7]
  std::vector<double> steps_per_unit;      ///< lanes; 0 for a dead lane
  std::vector<float> renorm;               ///< lanes; real units per step, 1 for a dead lane
  std::vector<Diagnostic> diagnostics;
};

}  // namespace weightmill
