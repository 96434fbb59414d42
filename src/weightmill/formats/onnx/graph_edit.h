#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <onnx_file.pb.h>

#include "graph_index.h"

namespace weightmill {

/// Collects the edits of a model while its index is valid, and applies them when all are known. Constants that lose
/// their last reader go, with the nodes that only passed them on.
class GraphEdit {
 public:
  /// Both must outlive the object.
  GraphEdit(onnx_file::ModelProto& model, GraphIndex& index);

  GraphIndex& index() const { return index_; }
  /// The node that has this number when the nodes of all graphs are counted in their order.
  NodeRef node_of(std::size_t number) const;
  /// A name that no graph of the model has: `base`, or the first of BASE_1, BASE_2 … that is free. It is taken then.
  std::string new_name(const std::string& base);
  /// Whether something will still read a value.
  bool is_read(int value) const {
    return n_reads_[static_cast<std::size_t>(value)] > 0 || index_.value(value).is_output;
  }

  /// Adds an initialiser; in a function, a Constant node before all others.
  void add_constant(int scope, onnx_file::TensorProto constant);
  /// Adds a node before those that are there, but behind the constants and behind what has been added already.
  void add_node(int scope, onnx_file::NodeProto node);
  /// The node goes, and reads nothing any more. The names of its outputs stay those of something else.
  void remove_node(NodeRef ref);
  /// A value's name and description go.
  void forget_name(int scope, const std::string& name);
  /// Input `number` of a node reads `name` from now on.
  void redirect_input(NodeRef ref, int number, const std::string& name);
  /// A Constant node becomes an initialiser of the same name, where a graph has those. Requires: the value is read.
  void make_initializer(int value);
  /// A model that this domain's operators are used in says so.
  void import_domain(int scope, const std::string& domain, std::int64_t version);

  /// Carries everything out. The index is not valid any more.
  void apply();

  /// How many nodes went that only passed a constant on.
  std::size_t n_removed_passes() const { return n_removed_passes_; }

 private:
  /// What goes from one graph and what comes into it.
  struct ScopeEdit {
    std::set<int> nodes;
    std::set<int> initializers;
    std::unordered_set<std::string> names;  ///< of values that are no more
    std::vector<onnx_file::TensorProto> constants;
    std::vector<onnx_file::NodeProto> new_nodes;
  };

  void drop_read(int value, std::vector<NodeRef>& going);
  void remove_all(std::vector<NodeRef> going);
  void apply_to_graph(onnx_file::GraphProto& graph, ScopeEdit& edit);
  static void apply_to_function(onnx_file::FunctionProto& function, ScopeEdit& edit);
  static void insert_with_constants(google::protobuf::RepeatedPtrField<onnx_file::NodeProto>& nodes, ScopeEdit& edit);
  ScopeEdit& edit_of(int scope) { return edits_[static_cast<std::size_t>(scope)]; }

  onnx_file::ModelProto& model_;
  GraphIndex& index_;
  std::vector<ScopeEdit> edits_;
  std::vector<int> n_reads_;     ///< of each value, readers and pins
  std::vector<int> first_node_;  ///< number of each scope's first node
  std::unordered_set<std::string> names_;         ///< of all graphs, and new ones; empty until one is asked for
  std::unordered_map<std::string, int> n_asked_;  ///< how often new_name() has been asked for a base
  std::size_t n_removed_passes_ = 0;
};

/// Whether a node only passes a constant on: Constant, Identity, Cast, Transpose.
bool passes_constants(const onnx_file::NodeProto& node);

}  // namespace weightmill
