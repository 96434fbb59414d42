#include "layer_check.h"

#include <algorithm>

#include <fmt/format.h>

namespace weightmill::verify {
namespace {

const Node* node_of(const PackedLayer& layer, const Model& model) {
  if (layer.subgraph < 0 || static_cast<std::size_t>(layer.subgraph) >= model.subgraphs.size()) return nullptr;
  const auto& nodes = model.subgraphs[static_cast<std::size_t>(layer.subgraph)].nodes;
  if (layer.node < 0 || static_cast<std::size_t>(layer.node) >= nodes.size()) return nullptr;
  return &nodes[static_cast<std::size_t>(layer.node)];
}

template <class T>
void expect(const T& found, const T& wanted, const char* what, Findings& findings) {
  if (found != wanted) findings.add(what, fmt::format("{}", found), fmt::format("{} as in the model", wanted));
}

bool is_input(const Node& node, int tensor) {
  return tensor < 0 || std::find(node.inputs.begin(), node.inputs.end(), tensor) != node.inputs.end();
}

/// `values` once for each channel, one value standing for all.
template <class T>
std::vector<T> spread(const std::vector<T>& values, std::size_t n, T fallback) {
  if (values.empty()) return std::vector<T>(n, fallback);
  return values.size() == 1 ? std::vector<T>(n, values[0]) : values;
}

void check_quantization(const PackedLayer& layer, const Tensor& weights, Findings& findings) {
  const auto n = static_cast<std::size_t>(std::max(0, layer.ohwi[0]));
  if (n != layer.channels.size()) return;  // said by the check of the records
  const Affine& q = weights.quantization;
  if (spread(layer.zero_point, n, std::int64_t{0}) != spread(q.zero_point, n, std::int64_t{0})) {
    findings.add("zero points", fmt::format("{} of them", layer.zero_point.size()), "those of the model");
  }
  if (spread(layer.weight_scale, n, 1.0f) != spread(q.scale, n, 1.0f)) {
    findings.add("weight scales", fmt::format("{} of them", layer.weight_scale.size()), "those of the model");
  }
}

}  // namespace

void check_against_node(const PackedLayer& layer, const Model& model, Findings& findings) {
  const Node* node = node_of(layer, model);
  if (node == nullptr) {
    findings.add("", fmt::format("operator {} of subgraph {}", layer.node, layer.subgraph), "an operator of the model");
    return;
  }
  expect(std::string(name_of(layer.kind)), std::string(name_of(node->kind)), "kind of operator", findings);
  expect(layer.op_name, node->op_name, "name of the operator", findings);
  if (!is_input(*node, layer.weights_tensor) || !is_input(*node, layer.bias_tensor)) {
    findings.add("", fmt::format("weights {}, bias {}", layer.weights_tensor, layer.bias_tensor),
                 "inputs of the operator");
  }
  if (layer.kind == OpKind::conv_2d || layer.kind == OpKind::depthwise_conv_2d) {
    expect(layer.stride_y, node->conv.stride_h, "stride y", findings);
    expect(layer.stride_x, node->conv.stride_w, "stride x", findings);
    expect(layer.dilation_y, node->conv.dilation_h, "dilation y", findings);
    expect(layer.dilation_x, node->conv.dilation_w, "dilation x", findings);
  }
  expect(layer.flipped, layer.kind == OpKind::transpose_conv_2d, "flipped", findings);
  if (const Tensor* weights = tensor_of(layer, model, layer.weights_tensor)) check_quantization(layer, *weights, findings);
}

std::vector<Finding> check_completeness(const Packed& packed, const Model& model) {
  std::vector<Finding> findings;
  for (std::size_t s = 0; s < model.subgraphs.size(); ++s) {
    for (std::size_t n = 0; n < model.subgraphs[s].nodes.size(); ++n) {
      const Node& node = model.subgraphs[s].nodes[n];
      const auto is_here = [&](const auto& entry) {
        return entry.subgraph == static_cast<int>(s) && entry.node == static_cast<int>(n);
      };
      if (std::any_of(packed.not_packed.begin(), packed.not_packed.end(), is_here)) continue;
      for (const std::size_t input : weight_inputs(node.kind)) {
        if (input >= node.inputs.size() || node.inputs[input] < 0) continue;
        const auto holds = [&](const PackedLayer& layer) {
          return is_here(layer) && layer.weights_tensor == node.inputs[input];
        };
        if (std::any_of(packed.layers.begin(), packed.layers.end(), holds)) continue;
        findings.push_back({-1, fmt::format("subgraph {}, operator {} ({})", s, n, node.op_name),
                            fmt::format("no layer for its weights, tensor {}", node.inputs[input]),
                            "a layer, or a reason why not"});
      }
    }
  }
  return findings;
}

}  // namespace weightmill::verify
