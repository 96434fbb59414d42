#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "onnx_model.h"
#include "tensor_types.h"

namespace weightmill {
namespace {

using namespace onnx_file;

/// Operators with weights, and which of their inputs those are.
struct WeightedOp {
  std::string_view domain;
  std::string_view op;
  std::array<int, 2> inputs;  ///< -1: no second one
  bool integer;               ///< computes with the codes themselves
};
constexpr std::array<WeightedOp, 17> kWeightedOps{{
    {"", "Conv", {1, -1}, false},
    {"", "ConvTranspose", {1, -1}, false},
    {"", "Gemm", {0, 1}, false},
    {"", "MatMul", {0, 1}, false},
    {"", "Gather", {0, -1}, false},
    {"", "LSTM", {1, 2}, false},
    {"", "GRU", {1, 2}, false},
    {"", "RNN", {1, 2}, false},
    {"", "ConvInteger", {1, -1}, true},
    {"", "MatMulInteger", {0, 1}, true},
    {"", "QLinearConv", {3, -1}, true},
    {"", "QLinearMatMul", {0, 3}, true},
    {"com.microsoft", "QGemm", {0, 3}, true},
    {"com.microsoft", "MatMulNBits", {1, -1}, true},
    {"com.microsoft", "MatMulIntegerToFloat", {0, 1}, true},
    {"com.microsoft", "DynamicQuantizeMatMul", {1, -1}, true},
    {"com.microsoft", "DynamicQuantizeLSTM", {1, 2}, true},
}};

const WeightedOp* find_op(const NodeProto& node) {
  const std::string_view domain = is_default_domain(node) ? std::string_view() : std::string_view(node.domain());
  const auto found = std::find_if(kWeightedOps.begin(), kWeightedOps.end(),
                                  [&](const WeightedOp& op) { return op.domain == domain && op.op == node.op_type(); });
  return found == kWeightedOps.end() ? nullptr : found;
}

bool only_moves_data(const NodeProto& node) {
  constexpr std::array<std::string_view, 6> kMoves{"Identity", "Transpose", "Reshape",
                                                   "Squeeze",  "Unsqueeze", "Flatten"};
  return is_default_domain(node) && std::find(kMoves.begin(), kMoves.end(), node.op_type()) != kMoves.end();
}

/// Reads how operators get at their weights.
class WeightReader {
 public:
  WeightReader(const GraphIndex& index, const Constants& constants) : index_(index), constants_(constants) {}

  void read(NodeRef ref, std::vector<OnnxWeight>& weights) const {
    const NodeProto& node = index_.node(ref);
    const WeightedOp* op = find_op(node);
    if (op == nullptr) return;
    for (const int input : op->inputs) {
      if (input < 0 || input >= node.input_size()) continue;
      auto weight = weight_of(value_of(ref, input), op->integer);
      if (!weight) continue;
      weight->scope = ref.scope;
      weight->index = ref.node;
      weight->graph = index_.scope(ref.scope).path;
      weight->node = label_of(node);
      weight->op = op->domain.empty() ? node.op_type() : node.domain() + "." + node.op_type();
      weight->activation_dtype = codes_behind(value_of(ref, input == 0 ? 1 : 0));
      weights.push_back(std::move(*weight));
    }
  }

 private:
  int value_of(NodeRef ref, int input) const {
    const NodeProto& node = index_.node(ref);
    if (input >= node.input_size() || node.input(input).empty()) return -1;
    return index_.resolve(ref.scope, node.input(input));
  }

  std::optional<NodeRef> producer(int value) const {
    if (value < 0 || index_.value(value).origin != Origin::node) return std::nullopt;
    return NodeRef{index_.value(value).scope, index_.value(value).index};
  }

  /// The producer of a value, before nodes that only move data. Ends: the index has refused cycles.
  std::optional<NodeRef> maker(int value) const {
    auto ref = producer(value);
    while (ref && only_moves_data(index_.node(*ref))) ref = producer(value_of(*ref, 0));
    return ref;
  }

  std::optional<OnnxConstant> constant(int value) const {
    if (value < 0) return std::nullopt;
    auto found = constants_.resolve(value);
    if (auto* constant = std::get_if<OnnxConstant>(&found)) return std::move(*constant);
    return std::nullopt;
  }

  std::optional<OnnxWeight> weight_of(int value, bool integer_operator) const {
    if (auto stored = constant(value)) return described(*stored, integer_operator ? "integer operator" : "float");
    const auto dequantize = maker(value);
    if (!dequantize || index_.node(*dequantize).op_type() != "DequantizeLinear") return std::nullopt;
    const int codes = value_of(*dequantize, 0);
    auto stored = constant(codes);
    const bool at_run_time = !stored;
    if (const auto quantize = producer(codes);
        at_run_time && quantize && index_.node(*quantize).op_type() == "QuantizeLinear") {
      stored = constant(value_of(*quantize, 0));
    }
    if (!stored) return std::nullopt;
    OnnxWeight weight = described(*stored, at_run_time ? "quantized at run time" : "dequantized");
    weight.granularity = granularity_of(*dequantize);
    read_parameters(*dequantize, weight);
    return weight;
  }

  void read_parameters(NodeRef dequantize, OnnxWeight& weight) const {
    if (const auto scale = constant(value_of(dequantize, 1))) weight.n_scales = n_elements(scale->shape, scale->name);
    const auto zero_point = constant(value_of(dequantize, 2));
    if (!zero_point || !is_integer(zero_point->dtype) || size_bits(zero_point->dtype) > 16) return;
    const std::vector<std::int32_t> points = read_integers(*zero_point);
    if (points.empty()) return;
    const auto [low, high] = std::minmax_element(points.begin(), points.end());
    weight.lowest_zero_point = *low;
    weight.highest_zero_point = *high;
  }

  static OnnxWeight described(const OnnxConstant& stored, std::string quantization) {
    OnnxWeight weight;
    weight.weight = stored.name;
    weight.shape = stored.stored_shape;
    weight.stored_dtype = stored.stored_dtype;
    weight.bytes = stored.bytes.size();
    weight.quantization = std::move(quantization);
    return weight;
  }

  std::string granularity_of(NodeRef dequantize) const {
    const NodeProto& node = index_.node(dequantize);
    const std::int64_t axis = int_attribute(node, "axis", 1);
    if (const std::int64_t block = int_attribute(node, "block_size", 0); block > 0) {
      return fmt::format("blocks of {} along axis {}", block, axis);
    }
    const auto scale = constant(value_of(dequantize, 1));
    if (!scale) return "scale computed at run time";
    return scale->shape.empty() || scale->shape == Shape{1} ? "per tensor" : fmt::format("per axis {}", axis);
  }

  /// The type of the codes that a value is dequantized from.
  DType codes_behind(int value) const {
    const auto dequantize = maker(value);
    if (!dequantize || index_.node(*dequantize).op_type() != "DequantizeLinear") return DType::other;
    const auto zero_point = constant(value_of(*dequantize, 2));
    return zero_point ? zero_point->dtype : DType::u8;
  }

  const GraphIndex& index_;
  const Constants& constants_;
};

}  // namespace

OnnxModel::Counts OnnxModel::counts() const {
  const GraphIndex index = impl_->index();
  Counts counts;
  counts.scopes = index.scopes().size();
  for (const Scope& scope : index.scopes()) counts.nodes += static_cast<std::size_t>(scope.nodes().size());
  for (const Value& value : index.values()) counts.initializers += value.origin == Origin::initializer ? 1 : 0;
  return counts;
}

std::vector<OnnxWeight> OnnxModel::weights() const {
  const GraphIndex index = impl_->index();
  const Constants constants(index, impl_->payloads, impl_->proto.ir_version());
  const WeightReader reader(index, constants);
  std::vector<OnnxWeight> weights;
  for (int scope = 0; scope < static_cast<int>(index.scopes().size()); ++scope) {
    for (int node = 0; node < index.scope(scope).nodes().size(); ++node) reader.read({scope, node}, weights);
  }
  return weights;
}

}  // namespace weightmill
