#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weightmill/formats/openvino.h>
#include <weightmill/model/weight_quantization.h>

namespace weightmill {

/// A float constant that an operator takes for its weights.  [docs/weight-only.md §1]
struct IrFloatWeight {
  std::size_t graph = 0;
  IrUse reader;
  std::size_t constant = 0;         ///< the layer where it is stored; where that is not known, the one that computes it
  std::vector<std::size_t> via;     ///< Convert and Reshape between constant and operator, as data flows
  IrConstant data;                  ///< no type: not known
  DType float_type = DType::other;  ///< what the operator reads
  Shape shape;                      ///< as the operator sees it
  std::optional<std::size_t> channel_axis;
  bool grouped = false;  ///< channels along axis 0 too
  std::optional<std::size_t> block_axis;
  std::string no_channels;   ///< why channel_axis is missing
  std::string left_reason;   ///< why it cannot be quantized; empty if it can
  std::string other_reader;  ///< a layer that reads the constant, and not as weights; empty: none
};

/// Operators whose weights are quantized, and which of them are where nobody names any.
const std::vector<std::string>& known_ir_types();
const std::vector<std::string>& usual_ir_types();

/// The float weights of a graph, in the order of its operators. Weights that are integers already, or fake-quantized,
/// are not among them.
std::vector<IrFloatWeight> find_float_weights(const Ir& ir, std::size_t graph);

}  // namespace weightmill
