#include "graph_edit.h"

#include <algorithm>

#include <fmt/format.h>

#include "constants.h"

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

/// Up to version 3 of the format each initialiser is an input too.
void add_input(GraphProto& graph, const TensorProto& constant) {
  ValueInfoProto& input = *graph.add_input();
  input.set_name(constant.name());
  auto& type = *input.mutable_type()->mutable_tensor_type();
  type.set_elem_type(constant.data_type());
  for (const std::int64_t extent : constant.dims()) type.mutable_shape()->add_dim()->set_dim_value(extent);
  if (constant.dims().empty()) type.mutable_shape();
}

NodeProto constant_node(TensorProto&& constant) {
  NodeProto node;
  node.set_op_type("Constant");
  node.add_output(constant.name());
  AttributeProto& value = *node.add_attribute();
  value.set_name("value");
  value.set_type(AttributeProto::TENSOR);
  *value.mutable_t() = std::move(constant);
  return node;
}

void insert_in_front(google::protobuf::RepeatedPtrField<NodeProto>& nodes, std::vector<NodeProto>& new_nodes) {
  const int n_before = nodes.size();
  for (NodeProto& node : new_nodes) *nodes.Add() = std::move(node);
  std::rotate(nodes.pointer_begin(), nodes.pointer_begin() + n_before, nodes.pointer_end());
}

}  // namespace

bool passes_constants(const NodeProto& node) {
  const std::string& op = node.op_type();
  return is_default_domain(node) && node.output_size() == 1 &&
         (op == "Constant" || op == "Identity" || op == "Cast" || op == "Transpose");
}

GraphEdit::GraphEdit(ModelProto& model, GraphIndex& index)
    : model_(model), index_(index), edits_(index.scopes().size()) {
  for (const Value& value : index_.values()) n_reads_.push_back(static_cast<int>(value.readers.size()) + value.n_pins);
  int n_nodes = 0;
  for (const Scope& scope : index_.scopes()) {
    first_node_.push_back(n_nodes);
    n_nodes += scope.nodes().size();
  }
}

NodeRef GraphEdit::node_of(std::size_t number) const {
  const auto after = std::upper_bound(first_node_.begin(), first_node_.end(), static_cast<int>(number));
  const auto scope = static_cast<int>(after - first_node_.begin()) - 1;
  return {scope, static_cast<int>(number) - first_node_[static_cast<std::size_t>(scope)]};
}

std::string GraphEdit::new_name(const std::string& base) {
  if (names_.empty()) {
    for (const Value& value : index_.values()) names_.insert(value.name);
  }
  for (int& i = n_asked_[base];; ++i) {
    std::string name = i == 0 ? base : fmt::format("{}_{}", base, i);
    if (names_.insert(name).second) return name;
  }
}

void GraphEdit::add_constant(int scope, TensorProto constant) {
  edit_of(scope).constants.push_back(std::move(constant));
}

void GraphEdit::add_node(int scope, NodeProto node) { edit_of(scope).new_nodes.push_back(std::move(node)); }

void GraphEdit::forget_name(int scope, const std::string& name) { edit_of(scope).names.insert(name); }

void GraphEdit::remove_node(NodeRef ref) { remove_all({ref}); }

void GraphEdit::redirect_input(NodeRef ref, int number, const std::string& name) {
  std::string& input = *index_.node(ref).mutable_input(number);
  std::vector<NodeRef> going;
  drop_read(index_.resolve(ref.scope, input), going);
  input = name;
  n_removed_passes_ += going.size();
  remove_all(std::move(going));
}

void GraphEdit::remove_all(std::vector<NodeRef> going) {
  while (!going.empty()) {
    const NodeRef now = going.back();
    going.pop_back();
    edit_of(now.scope).nodes.insert(now.node);
    const std::size_t n_before = going.size();
    for (const std::string& input : index_.node(now).input()) {
      if (!input.empty()) drop_read(index_.resolve(now.scope, input), going);
    }
    n_removed_passes_ += going.size() - n_before;
  }
}

/// One reader of a value is gone. If it was the last, an initialiser goes, and so does a node that only passes constants.
void GraphEdit::drop_read(int number, std::vector<NodeRef>& going) {
  if (--n_reads_[static_cast<std::size_t>(number)] > 0) return;
  const Value& value = index_.value(number);
  if (value.is_output) return;
  if (value.origin == Origin::initializer) {
    edit_of(value.scope).initializers.insert(value.index);
    edit_of(value.scope).names.insert(value.name);
  } else if (value.origin == Origin::node && passes_constants(index_.node({value.scope, value.index}))) {
    edit_of(value.scope).names.insert(value.name);
    going.push_back({value.scope, value.index});
  }
}

void GraphEdit::make_initializer(int number) {
  const Value& value = index_.value(number);
  if (value.origin != Origin::node || index_.scope(value.scope).graph == nullptr) return;
  const NodeRef ref{value.scope, value.index};
  const NodeProto& node = index_.node(ref);
  if (node.op_type() != "Constant" || !passes_constants(node) || node.attribute_size() != 1) return;
  if (!node.attribute(0).has_t()) return;
  TensorProto tensor = node.attribute(0).t();
  tensor.set_name(value.name);
  edit_of(ref.scope).nodes.insert(ref.node);
  edit_of(ref.scope).constants.push_back(std::move(tensor));
}

void GraphEdit::import_domain(int scope, const std::string& domain, std::int64_t version) {
  while (index_.scope(scope).parent >= 0) scope = index_.scope(scope).parent;
  FunctionProto* function = index_.scope(scope).function;
  const auto import = [&](google::protobuf::RepeatedPtrField<OperatorSetIdProto>& imports) {
    if (std::ranges::any_of(imports, [&](const auto& known) { return known.domain() == domain; })) return;
    OperatorSetIdProto& added = *imports.Add();
    added.set_domain(domain);
    added.set_version(version);
  };
  import(*model_.mutable_opset_import());
  if (function != nullptr) import(*function->mutable_opset_import());
}

void GraphEdit::apply() {
  // From the inside out: a node that goes may hold a graph that has an edit too.
  for (std::size_t scope = edits_.size(); scope-- > 0;) {
    ScopeEdit& edit = edits_[scope];
    const Scope& at = index_.scope(static_cast<int>(scope));
    remove_elements(at.nodes(), edit.nodes);
    at.graph != nullptr ? apply_to_graph(*at.graph, edit) : apply_to_function(*at.function, edit);
  }
}

void GraphEdit::apply_to_graph(GraphProto& graph, ScopeEdit& edit) {
  remove_elements(*graph.mutable_initializer(), edit.initializers);
  remove_named(*graph.mutable_input(), edit.names);
  remove_named(*graph.mutable_value_info(), edit.names);
  const bool is_old = model_.ir_version() < 4;
  // Old initialisers are inputs, and nobody could feed a new input of an inner graph.
  if (is_old && &graph != model_.mutable_graph()) return insert_with_constants(*graph.mutable_node(), edit);
  for (TensorProto& constant : edit.constants) {
    if (is_old) add_input(graph, constant);
    *graph.add_initializer() = std::move(constant);
  }
  insert_in_front(*graph.mutable_node(), edit.new_nodes);
}

/// A function has no initialisers.
void GraphEdit::apply_to_function(FunctionProto& function, ScopeEdit& edit) {
  remove_named(*function.mutable_value_info(), edit.names);
  insert_with_constants(*function.mutable_node(), edit);
}

/// Constants are nodes, first in the order so that every reader comes later.
void GraphEdit::insert_with_constants(google::protobuf::RepeatedPtrField<NodeProto>& nodes, ScopeEdit& edit) {
  std::vector<NodeProto> new_nodes;
  for (TensorProto& constant : edit.constants) new_nodes.push_back(constant_node(std::move(constant)));
  std::move(edit.new_nodes.begin(), edit.new_nodes.end(), std::back_inserter(new_nodes));
  insert_in_front(nodes, new_nodes);
}

}  // namespace weightmill
