#include "graph_index.h"

#include <algorithm>

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

using namespace onnx_file;

/// Paths are for messages: a hostile name must not fill the memory once for each graph below it.
constexpr std::size_t kMaxLabel = 64;

std::string path_of_child(const Scope& parent, const NodeProto& node, const std::string& attribute) {
  const std::string label(label_of(node).substr(0, kMaxLabel));
  return fmt::format("{}{}{}/{}", parent.path, parent.path.empty() ? "" : "/", label, attribute.substr(0, kMaxLabel));
}

/// Calls visit(name) for each name that a node of `graph`, or of a graph inside it, reads.
template <class Visit>
void visit_reads(const GraphProto& graph, const Visit& visit) {
  for (const NodeProto& node : graph.node()) {
    for (const std::string& name : node.input()) visit(name);
    for (const AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) visit_reads(attribute.g(), visit);
      for (const GraphProto& child : attribute.graphs()) visit_reads(child, visit);
    }
  }
}

}  // namespace

std::string_view label_of(const NodeProto& node) {
  if (!node.name().empty() || node.output().empty()) return node.name();
  return node.output(0);
}

google::protobuf::RepeatedPtrField<NodeProto>& Scope::nodes() const {
  return graph != nullptr ? *graph->mutable_node() : *function->mutable_node();
}

GraphIndex::GraphIndex(ModelProto& model, const std::string& where) : where_(where) {
  add_scopes(model);
  const int n_scopes = static_cast<int>(scopes_.size());
  for (int i = 0; i < n_scopes; ++i) define_all(i);
  for (int i = 0; i < n_scopes; ++i) {
    record_readers(i);
    record_outputs(i);
    pin_annotations(i);
  }
  pin_training(model);
  for (int i = 0; i < n_scopes; ++i) check_order(i);
}

int GraphIndex::resolve(int scope, const std::string& name) const {
  for (; scope >= 0; scope = this->scope(scope).parent) {
    const auto& values = this->scope(scope).values;
    if (const auto found = values.find(name); found != values.end()) return found->second;
  }
  return -1;
}

int GraphIndex::source_of(int number) const {
  while (value(number).origin == Origin::node) {
    const NodeRef ref{value(number).scope, value(number).index};
    if (node(ref).input().empty() || node(ref).input(0).empty()) break;
    number = resolve(ref.scope, node(ref).input(0));
  }
  return number;
}

int GraphIndex::common_scope(int a, int b) const {
  // A parent always has a lower number than its children.
  while (a != b && a >= 0 && b >= 0) (a > b ? a : b) = scope(std::max(a, b)).parent;
  return a == b ? a : -1;
}

void GraphIndex::add_scopes(ModelProto& model) {
  Scope main;
  main.graph = model.mutable_graph();
  scopes_.push_back(std::move(main));
  for (FunctionProto& function : *model.mutable_functions()) {
    Scope scope;
    scope.path = "function " + function.domain() + "." + function.name();
    scope.function = &function;
    scopes_.push_back(std::move(scope));
  }
  for (int i = 0; i < static_cast<int>(scopes_.size()); ++i) add_child_scopes(i);
}

void GraphIndex::add_child_scopes(int parent) {
  auto& nodes = scope(parent).nodes();
  const auto add = [&](int owner, const AttributeProto& attribute, GraphProto& graph) {
    Scope child;
    child.path = path_of_child(scope(parent), nodes[owner], attribute.name());
    child.parent = parent;
    child.owner = owner;
    child.graph = &graph;
    scopes_.push_back(std::move(child));
  };
  for (int i = 0; i < nodes.size(); ++i) {
    for (AttributeProto& attribute : *nodes[i].mutable_attribute()) {
      if (attribute.has_g()) add(i, attribute, *attribute.mutable_g());
      for (GraphProto& graph : *attribute.mutable_graphs()) add(i, attribute, graph);
    }
  }
}

void GraphIndex::define_all(int number) {
  const Scope& scope = this->scope(number);
  if (scope.graph != nullptr) {
    for (int i = 0; i < scope.graph->input_size(); ++i)
      define(number, scope.graph->input(i).name(), Origin::graph_input, i);
    for (int i = 0; i < scope.graph->initializer_size(); ++i) {
      define(number, scope.graph->initializer(i).name(), Origin::initializer, i);
    }
    for (int i = 0; i < scope.graph->sparse_initializer_size(); ++i) {
      define(number, scope.graph->sparse_initializer(i).values().name(), Origin::sparse_initializer, i);
    }
  } else {
    for (int i = 0; i < scope.function->input_size(); ++i)
      define(number, scope.function->input(i), Origin::graph_input, i);
  }
  for (int i = 0; i < scope.nodes().size(); ++i) {
    for (const std::string& name : scope.nodes()[i].output()) define(number, name, Origin::node, i);
  }
}

int GraphIndex::define(int scope, const std::string& name, Origin origin, int index) {
  if (name.empty()) return -1;
  auto& values = scopes_[static_cast<std::size_t>(scope)].values;
  const auto [place, is_new] = values.try_emplace(name, static_cast<int>(values_.size()));
  if (is_new) {
    values_.push_back({name, scope, origin, index, false, false, 0, {}});
    return place->second;
  }
  Value& known = value(place->second);
  if (known.origin != Origin::graph_input || (origin != Origin::initializer && origin != Origin::sparse_initializer)) {
    fail(ErrorCode::bad_file, where_, fmt::format("the name '{}' is defined twice in one graph", name));
  }
  known.origin = origin;
  known.index = index;
  known.also_input = true;
  return place->second;
}

void GraphIndex::record_readers(int number) {
  const auto& nodes = scope(number).nodes();
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].input()) {
      if (name.empty()) continue;
      const int read = resolve(number, name);
      if (read < 0) {
        fail(ErrorCode::bad_file, where_,
             fmt::format("node '{}' reads '{}', which nothing defines", label_of(nodes[i]), name));
      }
      value(read).readers.push_back({number, i});
    }
  }
}

void GraphIndex::record_outputs(int number) {
  const auto record = [&](const std::string& name) {
    const int output = resolve(number, name);
    if (output < 0) fail(ErrorCode::bad_file, where_, fmt::format("the output '{}' is defined by nothing", name));
    value(output).is_output = true;
  };
  if (const GraphProto* graph = scope(number).graph) {
    for (const ValueInfoProto& output : graph->output()) record(output.name());
  } else {
    for (const std::string& output : scope(number).function->output()) record(output);
  }
}

void GraphIndex::pin(int scope, const std::string& name) {
  if (const int pinned = resolve(scope, name); pinned >= 0) ++value(pinned).n_pins;
}

void GraphIndex::pin_annotations(int number) {
  const GraphProto* graph = scope(number).graph;
  if (graph == nullptr) return;
  for (const TensorAnnotation& annotation : graph->quantization_annotation()) {
    for (const auto& parameter : annotation.quant_parameter_tensor_names()) pin(number, parameter.value());
  }
}

void GraphIndex::pin_training(const ModelProto& model) {
  const auto pin_main = [&](const std::string& name) { pin(0, name); };
  for (const TrainingInfoProto& training : model.training_info()) {
    visit_reads(training.initialization(), pin_main);
    visit_reads(training.algorithm(), pin_main);
    for (const auto* bindings : {&training.initialization_binding(), &training.update_binding()}) {
      for (const auto& binding : *bindings) {
        pin_main(binding.key());
        pin_main(binding.value());
      }
    }
  }
}

/// Takes away, again and again, nodes that wait for no other: what is left waits for itself.
void GraphIndex::check_order(int number) const {
  const auto& nodes = scope(number).nodes();
  std::vector<std::vector<int>> readers(static_cast<std::size_t>(nodes.size()));
  std::vector<int> n_waiting(readers.size(), 0);
  for (const auto& [name, v] : scope(number).values) {
    if (value(v).origin != Origin::node) continue;
    for (NodeRef reader : value(v).readers) {
      while (reader.scope != number) reader = {scope(reader.scope).parent, scope(reader.scope).owner};
      readers[static_cast<std::size_t>(value(v).index)].push_back(reader.node);
      ++n_waiting[static_cast<std::size_t>(reader.node)];
    }
  }
  std::vector<int> ready;
  for (int i = 0; i < nodes.size(); ++i) {
    if (n_waiting[static_cast<std::size_t>(i)] == 0) ready.push_back(i);
  }
  for (std::size_t done = 0; done < ready.size(); ++done) {
    for (const int reader : readers[static_cast<std::size_t>(ready[done])]) {
      if (--n_waiting[static_cast<std::size_t>(reader)] == 0) ready.push_back(reader);
    }
  }
  if (ready.size() == n_waiting.size()) return;
  const auto stuck = std::find_if(n_waiting.begin(), n_waiting.end(), [](int n) { return n > 0; }) - n_waiting.begin();
  fail(ErrorCode::bad_file, where_,
       fmt::format("node '{}' waits for itself: the graph has a cycle", label_of(nodes[static_cast<int>(stuck)])));
}

}  // namespace weightmill
