#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <onnx_file.pb.h>

namespace weightmill {

/// What gives a value its content.
enum class Origin { graph_input, initializer, sparse_initializer, node };

/// A node, by the scope that holds it and its number there.
struct NodeRef {
  int scope = -1;
  int node = -1;
  friend bool operator==(const NodeRef&, const NodeRef&) = default;
};

/// One name, where it is defined.
struct Value {
  std::string name;
  int scope = -1;
  Origin origin = Origin::graph_input;
  int index = -1;                ///< of the input, initialiser or node in its scope
  bool also_input = false;       ///< an initialiser that is listed as a graph input too
  bool is_output = false;        ///< of a graph or function
  int n_pins = 0;                ///< other readers that must not lose it: annotations, training graphs
  std::vector<NodeRef> readers;  ///< once for each input that reads it, sub-graphs included
};

/// A graph or a function body: a name space.
struct Scope {
  std::string path;                        ///< "" for the main graph
  int parent = -1;                         ///< the scope whose names are visible too; -1: none
  int owner = -1;                          ///< the node of `parent` that this graph belongs to
  onnx_file::GraphProto* graph = nullptr;  ///< exactly one of these two is set
  onnx_file::FunctionProto* function = nullptr;
  std::unordered_map<std::string, int> values;  ///< name to number in GraphIndex::values()

  google::protobuf::RepeatedPtrField<onnx_file::NodeProto>& nodes() const;
};

/// Who defines and who reads each value of a model, through sub-graphs and functions.
///
/// Points into the model: nodes and initialisers may be changed, but not removed, while the index is in use.
class GraphIndex {
 public:
  /// `where` names the file.
  /// Throws: bad_file if a name is defined twice or read without being defined, or if nodes form a cycle (names them).
  GraphIndex(onnx_file::ModelProto& model, const std::string& where);

  const std::vector<Scope>& scopes() const { return scopes_; }
  const std::vector<Value>& values() const { return values_; }
  Value& value(int number) { return values_[static_cast<std::size_t>(number)]; }
  const Value& value(int number) const { return values_[static_cast<std::size_t>(number)]; }
  const Scope& scope(int number) const { return scopes_[static_cast<std::size_t>(number)]; }
  onnx_file::NodeProto& node(NodeRef ref) const { return *scope(ref.scope).nodes().Mutable(ref.node); }

  /// The number of the value that `name` means in `scope`, or -1.
  int resolve(int scope, const std::string& name) const;
  /// The value at the far end of first inputs: behind nodes that pass a constant on, the stored tensor.
  int source_of(int value) const;
  /// The innermost scope that holds both; -1 where they have none in common.
  int common_scope(int a, int b) const;

 private:
  void add_scopes(onnx_file::ModelProto& model);
  void add_child_scopes(int parent);
  void define_all(int scope);
  int define(int scope, const std::string& name, Origin origin, int index);
  void record_readers(int scope);
  void record_outputs(int scope);
  void pin_annotations(int scope);
  void pin_training(const onnx_file::ModelProto& model);
  void pin(int scope, const std::string& name);
  void check_order(int scope) const;

  std::string where_;
  std::vector<Scope> scopes_;
  std::vector<Value> values_;
};

/// The node's name, or its first output's where it has none.
std::string_view label_of(const onnx_file::NodeProto& node);

}  // namespace weightmill
