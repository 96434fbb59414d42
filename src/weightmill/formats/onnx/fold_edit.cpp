#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "onnx_model.h"
#include "tensor_types.h"

namespace weightmill {
namespace {

using namespace onnx_file;

/// Removes the elements of a repeated field whose number is in `numbers`; the rest keeps its order.
template <class Field>
void remove_elements(Field& field, const std::set<int>& numbers) {
  int kept = 0;
  for (int i = 0; i < field.size(); ++i) {
    if (!numbers.contains(i)) field.SwapElements(kept++, i);
  }
  field.DeleteSubrange(kept, field.size() - kept);
}

/// Removes the elements of a repeated field whose name is in `names`.
template <class Field>
void remove_named(Field& field, const std::unordered_set<std::string>& names) {
  std::set<int> numbers;
  for (int i = 0; i < field.size(); ++i) {
    if (names.contains(field[i].name())) numbers.insert(i);
  }
  remove_elements(field, numbers);
}

/// What goes from one graph and what comes into it.
struct ScopeEdit {
  std::set<int> nodes;
  std::set<int> initializers;
  std::unordered_set<std::string> names;  ///< of values that are no more
  std::vector<TensorProto> constants;     ///< to be added
};

/// Collects the edits of a model while its index is valid, and applies them when all are known.
class FoldEdit {
 public:
  FoldEdit(ModelProto& model, GraphIndex& index) : model_(model), index_(index), edits_(index.scopes().size()) {
    for (const Value& value : index_.values())
      n_reads_.push_back(static_cast<int>(value.readers.size()) + value.n_pins);
    int n_nodes = 0;
    for (const Scope& scope : index_.scopes()) {
      first_node_.push_back(n_nodes);
      n_nodes += scope.nodes().size();
    }
  }

  NodeRef node_of(std::size_t number) const {
    const auto after = std::upper_bound(first_node_.begin(), first_node_.end(), static_cast<int>(number));
    const auto scope = static_cast<int>(after - first_node_.begin()) - 1;
    return {scope, static_cast<int>(number) - first_node_[static_cast<std::size_t>(scope)]};
  }

  /// Puts `constant`, still without a name, in the place of the nodes.
  void replace(const std::vector<std::size_t>& numbers, const TensorProto& constant) {
    std::vector<NodeRef> nodes;
    for (const std::size_t number : numbers) nodes.push_back(node_of(number));
    while (!nodes.empty()) nodes = replace_together(nodes, constant);
  }

  /// Names of constants that lost a reader but not the last one.
  std::vector<std::string> kept_sources() const {
    std::set<std::string> names;
    for (const int source : sources_) {
      const Value& value = index_.value(source);
      if (n_reads_[static_cast<std::size_t>(source)] > 0 || value.is_output) names.insert(value.name);
    }
    return {names.begin(), names.end()};
  }

  void apply() {
    move_parameters();
    // From the inside out: a node that goes may hold a graph that has an edit too.
    for (std::size_t scope = edits_.size(); scope-- > 0;) {
      ScopeEdit& edit = edits_[scope];
      const Scope& at = index_.scope(static_cast<int>(scope));
      remove_elements(at.nodes(), edit.nodes);
      at.graph != nullptr ? apply_to_graph(*at.graph, edit) : apply_to_function(*at.function, edit);
    }
  }

 private:
  /// Replaces the first node and all that can share its constant; returns the others.
  std::vector<NodeRef> replace_together(const std::vector<NodeRef>& nodes, const TensorProto& constant) {
    std::vector<NodeRef> together{nodes.front()};
    std::vector<NodeRef> others;
    int home = nodes.front().scope;
    for (std::size_t i = 1; i < nodes.size(); ++i) {
      const int common = index_.common_scope(home, nodes[i].scope);
      (common >= 0 ? together : others).push_back(nodes[i]);
      if (common >= 0) home = common;
    }
    const std::string first_output = index_.node(together.front()).output(0);
    const bool moves_out = home != together.front().scope;
    const std::string name = moves_out ? new_name(first_output) : first_output;
    for (const NodeRef node : together) {
      if (moves_out || node == together.front() || sees(node, home, name)) {
        replace_node(node, name);
      } else {
        others.push_back(node);
      }
    }
    TensorProto named = constant;
    named.set_name(name);
    edits_[static_cast<std::size_t>(home)].constants.push_back(std::move(named));
    return others;
  }

  /// Whether all readers of the node's output would get the value of scope `home` under `name`.
  bool sees(NodeRef node, int home, const std::string& name) const {
    const int wanted = index_.resolve(home, name);
    const Value& output = output_of(node);
    return std::all_of(output.readers.begin(), output.readers.end(),
                       [&](NodeRef reader) { return index_.resolve(reader.scope, name) == wanted; });
  }

  const Value& output_of(NodeRef node) const {
    return index_.value(index_.resolve(node.scope, index_.node(node).output(0)));
  }

  /// A name that no graph of the model has yet: a constant moves out into a graph around several others.
  std::string new_name(const std::string& base) {
    if (names_.empty()) {
      for (const Value& value : index_.values()) names_.insert(value.name);
    }
    for (int& i = n_shared_[base];; ++i) {
      std::string name = i == 0 ? base + "_shared" : fmt::format("{}_shared_{}", base, i);
      if (names_.insert(name).second) return name;
    }
  }

  void replace_node(NodeRef ref, const std::string& name) {
    NodeProto& node = index_.node(ref);
    const std::string old_name = node.output(0);
    if (old_name != name) {
      rename_reads(output_of(ref).readers, old_name, name);
      edit_of(ref).names.insert(old_name);
    }
    sources_.push_back(source_of(index_.resolve(ref.scope, node.input(0))));
    for (int i = 1; i < node.input_size(); ++i) {
      if (!node.input(i).empty()) parameters_.insert(index_.resolve(ref.scope, node.input(i)));
    }
    remove_node(ref);
  }

  /// A node that reads a value several times is among its readers as often, one after the other.
  void rename_reads(std::vector<NodeRef> readers, const std::string& old_name, const std::string& name) {
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    for (const NodeRef reader : readers) {
      for (std::string& input : *index_.node(reader).mutable_input()) {
        if (input == old_name) input = name;
      }
    }
  }

  /// Scales and zero points that a Constant node gives and that are still read become initialisers, as the codes are:
  /// engines look for the parameters of a dequantization there. Not in functions, which have no initialisers.
  void move_parameters() {
    for (const int number : parameters_) {
      const Value& value = index_.value(number);
      const bool is_read = n_reads_[static_cast<std::size_t>(number)] > 0 && !value.is_output;
      if (!is_read || value.origin != Origin::node || index_.scope(value.scope).graph == nullptr) continue;
      const NodeRef ref{value.scope, value.index};
      const NodeProto& node = index_.node(ref);
      if (node.op_type() != "Constant" || !passes_constants(node) || node.attribute_size() != 1) continue;
      if (!node.attribute(0).has_t()) continue;
      TensorProto tensor = node.attribute(0).t();
      tensor.set_name(value.name);
      edit_of(ref).nodes.insert(ref.node);
      edit_of(ref).constants.push_back(std::move(tensor));
    }
  }

  /// The value at the far end of the nodes that only pass constants.
  int source_of(int number) const {
    while (index_.value(number).origin == Origin::node) {
      const NodeRef ref{index_.value(number).scope, index_.value(number).index};
      if (index_.node(ref).input().empty()) break;
      number = index_.resolve(ref.scope, index_.node(ref).input(0));
    }
    return number;
  }

  void remove_node(NodeRef ref) {
    std::vector<NodeRef> going{ref};
    while (!going.empty()) {
      const NodeRef now = going.back();
      going.pop_back();
      edit_of(now).nodes.insert(now.node);
      for (const std::string& input : index_.node(now).input()) {
        if (!input.empty()) drop_read(index_.resolve(now.scope, input), going);
      }
    }
  }

  /// One reader of a value is gone. If it was the last, an initialiser goes, and so does a node that only passes
  /// constants.
  void drop_read(int number, std::vector<NodeRef>& going) {
    if (--n_reads_[static_cast<std::size_t>(number)] > 0) return;
    const Value& value = index_.value(number);
    if (value.is_output) return;
    if (value.origin == Origin::initializer) {
      edits_[static_cast<std::size_t>(value.scope)].initializers.insert(value.index);
      edits_[static_cast<std::size_t>(value.scope)].names.insert(value.name);
    } else if (value.origin == Origin::node && passes_constants(index_.node({value.scope, value.index}))) {
      edits_[static_cast<std::size_t>(value.scope)].names.insert(value.name);
      going.push_back({value.scope, value.index});
    }
  }

  static bool passes_constants(const NodeProto& node) {
    const std::string& op = node.op_type();
    return is_default_domain(node) && node.output_size() == 1 &&
           (op == "Constant" || op == "Identity" || op == "Cast" || op == "Transpose");
  }

  void apply_to_graph(GraphProto& graph, ScopeEdit& edit) {
    remove_elements(*graph.mutable_initializer(), edit.initializers);
    remove_named(*graph.mutable_input(), edit.names);
    remove_named(*graph.mutable_value_info(), edit.names);
    const bool is_old = model_.ir_version() < 4;
    // Old initialisers are inputs, and nobody could feed a new input of an inner graph.
    if (is_old && &graph != model_.mutable_graph()) return add_constant_nodes(*graph.mutable_node(), edit.constants);
    for (TensorProto& constant : edit.constants) {
      if (is_old) add_input(graph, constant);
      *graph.add_initializer() = std::move(constant);
    }
  }

  /// Up to version 3 of the format each initialiser is an input too.
  static void add_input(GraphProto& graph, const TensorProto& constant) {
    ValueInfoProto& input = *graph.add_input();
    input.set_name(constant.name());
    auto& type = *input.mutable_type()->mutable_tensor_type();
    type.set_elem_type(constant.data_type());
    for (const std::int64_t extent : constant.dims()) type.mutable_shape()->add_dim()->set_dim_value(extent);
    if (constant.dims().empty()) type.mutable_shape();
  }

  /// A function has no initialisers.
  static void apply_to_function(FunctionProto& function, ScopeEdit& edit) {
    remove_named(*function.mutable_value_info(), edit.names);
    add_constant_nodes(*function.mutable_node(), edit.constants);
  }

  /// First in the order, so that every reader comes later.
  static void add_constant_nodes(google::protobuf::RepeatedPtrField<NodeProto>& nodes,
                                 std::vector<TensorProto>& constants) {
    const int n_before = nodes.size();
    for (TensorProto& constant : constants) {
      NodeProto& node = *nodes.Add();
      node.set_op_type("Constant");
      node.add_output(constant.name());
      AttributeProto& value = *node.add_attribute();
      value.set_name("value");
      value.set_type(AttributeProto::TENSOR);
      *value.mutable_t() = std::move(constant);
    }
    std::rotate(nodes.pointer_begin(), nodes.pointer_begin() + n_before, nodes.pointer_end());
  }

  ScopeEdit& edit_of(NodeRef ref) { return edits_[static_cast<std::size_t>(ref.scope)]; }

  ModelProto& model_;
  GraphIndex& index_;
  std::vector<ScopeEdit> edits_;
  std::vector<int> n_reads_;     ///< of each value, readers and pins
  std::vector<int> sources_;     ///< values of the float constants behind replaced nodes
  std::set<int> parameters_;     ///< values of scales and zero points of replaced nodes
  std::vector<int> first_node_;  ///< number of each scope's first node
  std::unordered_set<std::string> names_;           ///< of all graphs, and new ones; empty until one is asked for
  std::unordered_map<std::string, int> n_shared_;  ///< how often new_name() has been asked for a base
};

}  // namespace

std::vector<std::string> OnnxModel::fold_quantize(const std::vector<OnnxFold>& folds) {
  GraphIndex index = impl_->index();
  FoldEdit edit(impl_->proto, index);
  for (const OnnxFold& fold : folds) {
    Payload payload;
    payload.size_bytes = weightmill::size_bytes(fold.shape, fold.dtype, "codes");
    payload.produce = fold.codes;
    TensorProto constant;
    constant.set_data_type(data_type_of(fold.dtype));
    for (const std::int64_t extent : fold.shape) constant.add_dims(extent);
    constant.set_raw_data(impl_->payloads.add(std::move(payload)));
    edit.replace(fold.quantize, constant);
  }
  std::vector<std::string> kept = edit.kept_sources();
  edit.apply();
  return kept;
}

}  // namespace weightmill
