#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include <weightmill/model/weight_quantization.h>

#include "graph_edit.h"
#include "onnx_model.h"

namespace weightmill {
namespace {

using namespace onnx_file;

/// What a report calls a node. Names are cut: many weights may stand behind one node with a long name.
std::string title_of(const NodeProto& node) {
  constexpr std::size_t kMaxName = 64;
  return fmt::format("{} {}", node.op_type().substr(0, kMaxName), label_of(node).substr(0, kMaxName));
}

/// Operators with weights, which of their inputs those are, and whether this program quantizes them.
struct FloatOp {
  std::string_view op;
  std::array<int, 2> inputs;  ///< -1: no second one
  bool quantized;
};
constexpr std::array<FloatOp, 8> kFloatOps{{{"Conv", {1, -1}, true},
                                            {"ConvTranspose", {1, -1}, true},
                                            {"Gemm", {0, 1}, true},
                                            {"MatMul", {0, 1}, true},
                                            {"Gather", {0, -1}, true},
                                            {"LSTM", {1, 2}, false},
                                            {"GRU", {1, 2}, false},
                                            {"RNN", {1, 2}, false}}};

const FloatOp* find_op(const NodeProto& node) {
  if (!is_default_domain(node)) return nullptr;
  const auto found = std::ranges::find(kFloatOps, node.op_type(), &FloatOp::op);
  return found == kFloatOps.end() ? nullptr : found;
}

/// The axes of a matrix, or of a batch of them, whose row and column numbers are those of the last two axes.
void set_matrix_axes(OnnxFloatWeight& weight, bool channels_last) {
  const std::size_t rank = weight.data.shape.size();
  if (rank < 2) {
    weight.no_channels = "it is a vector, with one output channel";
    return;
  }
  weight.channel_axis = rank - (channels_last ? 1 : 2);
  weight.block_axis = rank - (channels_last ? 2 : 1);
}

void set_transposed_convolution_axes(OnnxFloatWeight& weight, const NodeProto& node) {
  if (int_attribute(node, "group", 1) == 1 && weight.data.shape.size() > 1) {
    weight.channel_axis = 1;
  } else {
    weight.no_channels = "the output channels of a grouped ConvTranspose lie on two axes";
  }
}

void set_gather_axes(OnnxFloatWeight& weight, const NodeProto& node) {
  const auto rank = static_cast<std::int64_t>(weight.data.shape.size());
  const std::int64_t axis = int_attribute(node, "axis", 0);
  if (axis == 0 || axis == -rank) {
    weight.channel_axis = 0;
  } else {
    weight.no_channels = kScalesOfLookUps;
  }
}

/// Which axis has the output channels, and which one a dot product runs along.
void set_axes(OnnxFloatWeight& weight, const NodeProto& node) {
  const bool second = weight.input == 1;
  if (weight.data.shape.empty()) {
    weight.no_channels = "it is a single number";
  } else if (weight.op == "Conv") {
    weight.channel_axis = 0;
  } else if (weight.op == "ConvTranspose") {
    set_transposed_convolution_axes(weight, node);
  } else if (weight.op == "Gather") {
    set_gather_axes(weight, node);
  } else {  // y[m, n] = sum over k of a[m, k] b[k, n]; Gemm may have either the other way round
    const bool turned = weight.op == "Gemm" && int_attribute(node, second ? "transB" : "transA", 0) != 0;
    set_matrix_axes(weight, second != turned);
  }
}

std::string refuse_data(const OnnxConstant& data) {
  if (data.dtype != DType::f32 && data.dtype != DType::f16 && data.dtype != DType::bf16)
    return fmt::format("its type is {}", name_of(data.dtype));
  return data.bytes.empty() ? "it is empty" : "";
}

bool is_float_type(const OnnxConstant& data) { return is_float(data.dtype); }

/// Reads the float weights of a model's operators.
class FloatWeightReader {
 public:
  FloatWeightReader(const ModelProto& model, const GraphIndex& index, const Constants& constants)
      : model_(model), index_(index), constants_(constants), computed_(values_from_constants(index)) {}

  void read(NodeRef ref, std::size_t number, std::vector<OnnxFloatWeight>& weights) const {
    const NodeProto& node = index_.node(ref);
    const FloatOp* op = find_op(node);
    if (op == nullptr) return;
    for (const int input : op->inputs) {
      auto weight = weight_of(ref, input);
      if (!weight) continue;
      weight->node = number;
      weight->input = input;
      weight->graph = index_.scope(ref.scope).path;
      weight->name = label_of(node);
      weight->op = node.op_type();
      weight->opset = opset_of(model_, index_, ref.scope);
      if (weight->left_reason.empty()) weight->left_reason = refuse_data(weight->data);
      if (!op->quantized) weight->left_reason = fmt::format("weights of {} are not quantized", op->op);
      set_axes(*weight, node);
      weights.push_back(std::move(*weight));
    }
  }

  /// Whether input `number` of a node is a float weight that can be quantized.
  bool can_be_quantized(NodeRef ref, int number) const {
    const FloatOp* op = find_op(index_.node(ref));
    if (op == nullptr || !op->quantized || std::ranges::find(op->inputs, number) == op->inputs.end()) return false;
    const auto weight = weight_of(ref, number);
    return weight && weight->left_reason.empty() && refuse_data(weight->data).empty();
  }

 private:
  std::optional<OnnxFloatWeight> weight_of(NodeRef ref, int input) const {
    const NodeProto& node = index_.node(ref);
    if (input < 0 || input >= node.input_size() || node.input(input).empty()) return std::nullopt;
    const int value = index_.resolve(ref.scope, node.input(input));
    OnnxFloatWeight weight;
    auto found = constants_.resolve(value);
    if (auto* constant = std::get_if<OnnxConstant>(&found)) {
      if (!is_float_type(*constant)) return std::nullopt;
      weight.data = std::move(*constant);
      weight.source = static_cast<std::size_t>(index_.source_of(value));
      weight.via = nodes_behind(value);
      weight.was_input = model_.ir_version() >= 4 && index_.value(static_cast<int>(weight.source)).also_input;
      return weight;
    }
    weight.left_reason = reason_of(value, std::get<NotConstant>(found));
    if (weight.left_reason.empty()) return std::nullopt;  // an activation
    weight.data.name = index_.value(value).name;
    weight.source = static_cast<std::size_t>(value);
    return weight;
  }

  std::string reason_of(int value, const NotConstant& found) const {
    if (!found.reason.empty()) return found.reason;
    if (!computed_[static_cast<std::size_t>(value)]) return "";
    const std::string& op = maker_of(value).op_type();
    if (op == "DequantizeLinear") return "";  // integers already, or a matter for `fold`
    return fmt::format("{} computes it from constants: have them folded first", op);
  }

  /// The node that makes a computed value, before those that pass it on.
  const NodeProto& maker_of(int value) const {
    while (true) {
      const NodeRef ref{index_.value(value).scope, index_.value(value).index};
      const NodeProto& node = index_.node(ref);
      if (!passes_constants(node) || node.input().empty() || node.input(0).empty()) return node;
      const int before = index_.resolve(ref.scope, node.input(0));  // ends: the index has refused cycles
      if (index_.value(before).origin != Origin::node) return node;
      value = before;
    }
  }

  std::vector<std::string> nodes_behind(int value) const {
    std::vector<std::string> labels;
    while (index_.value(value).origin == Origin::node) {
      const NodeRef ref{index_.value(value).scope, index_.value(value).index};
      const NodeProto& node = index_.node(ref);
      labels.push_back(title_of(node));
      if (node.input().empty()) break;
      value = index_.resolve(ref.scope, node.input(0));
    }
    return labels;
  }

  /// For each value, whether nodes compute it from constants alone. Nodes come after what they read, in a valid model;
  /// in another, fewer values are found.
  static std::vector<bool> values_from_constants(const GraphIndex& index) {
    std::vector<bool> computed;
    for (const Value& value : index.values()) computed.push_back(value.origin == Origin::initializer);
    for (int scope = 0; scope < static_cast<int>(index.scopes().size()); ++scope) {
      for (const NodeProto& node : index.scope(scope).nodes()) {
        if (!is_constant_node(index, computed, scope, node)) continue;
        for (const std::string& output : node.output()) {
          if (!output.empty()) computed[static_cast<std::size_t>(index.resolve(scope, output))] = true;
        }
      }
    }
    return computed;
  }

  static bool is_constant_node(const GraphIndex& index, const std::vector<bool>& computed, int scope,
                               const NodeProto& node) {
    if (node.input().empty()) return node.op_type() == "Constant";
    if (node.op_type().starts_with("Random")) return false;
    return std::ranges::all_of(node.input(), [&](const std::string& input) {
      return input.empty() || computed[static_cast<std::size_t>(index.resolve(scope, input))];
    });
  }

  const ModelProto& model_;
  const GraphIndex& index_;
  const Constants& constants_;
  std::vector<bool> computed_;
};

/// Who reads a constant, also behind the nodes that only pass it on.
class ReaderWalk {
 public:
  /// More are not named: each of many weights may have as many readers.
  static constexpr std::size_t kMaxNamed = 8;

  ReaderWalk(const GraphIndex& index, const FloatWeightReader& weights) : index_(index), weights_(weights) {}

  std::vector<std::string> other_readers(int source) const {
    std::vector<std::string> others;
    std::vector<int> waiting{source};
    while (!waiting.empty() && others.size() < kMaxNamed) {
      const Value& value = index_.value(waiting.back());
      waiting.pop_back();
      if (value.is_output) others.push_back("an output of the graph");
      if (value.n_pins > 0) others.push_back("an annotation or a training graph");
      const std::set<std::pair<int, int>> readers = distinct(value.readers);
      for (const auto& [scope, node] : readers) visit({scope, node}, value, waiting, others);
    }
    return others;
  }

 private:
  static std::set<std::pair<int, int>> distinct(const std::vector<NodeRef>& readers) {
    std::set<std::pair<int, int>> result;
    for (const NodeRef reader : readers) result.emplace(reader.scope, reader.node);
    return result;
  }

  void visit(NodeRef reader, const Value& value, std::vector<int>& waiting, std::vector<std::string>& others) const {
    const NodeProto& node = index_.node(reader);
    if (passes_constants(node)) {
      waiting.push_back(index_.resolve(reader.scope, node.output(0)));
      return;
    }
    for (int i = 0; i < node.input_size(); ++i) {
      if (node.input(i) == value.name && !weights_.can_be_quantized(reader, i)) others.push_back(title_of(node));
    }
  }

  const GraphIndex& index_;
  const FloatWeightReader& weights_;
};

}  // namespace

std::vector<OnnxFloatWeight> OnnxModel::float_weights() const {
  const GraphIndex index = impl_->index();
  const Constants constants(index, impl_->payloads, Constants::kNoneReplaceable);
  const FloatWeightReader reader(impl_->proto, index, constants);
  std::vector<OnnxFloatWeight> weights;
  std::size_t number = 0;
  for (int scope = 0; scope < static_cast<int>(index.scopes().size()); ++scope) {
    for (int node = 0; node < index.scope(scope).nodes().size(); ++node, ++number)
      reader.read({scope, node}, number, weights);
  }
  const ReaderWalk walk(index, reader);
  std::map<std::size_t, std::vector<std::string>> others;
  for (OnnxFloatWeight& weight : weights) {
    const auto [known, is_new] = others.try_emplace(weight.source);
    if (is_new) known->second = walk.other_readers(static_cast<int>(weight.source));
    weight.other_readers = known->second;
  }
  return weights;
}

}  // namespace weightmill
