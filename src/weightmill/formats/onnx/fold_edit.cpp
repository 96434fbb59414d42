#include <algorithm>
#include <set>

#include "graph_edit.h"
#include "onnx_model.h"
#include "tensor_types.h"

namespace weightmill {
namespace {

using namespace onnx_file;

/// Puts integer constants in the place of QuantizeLinear nodes.
class FoldEdit {
 public:
  FoldEdit(ModelProto& model, GraphIndex& index) : edit_(model, index), index_(index) {}

  /// Puts `constant`, still without a name, in the place of the nodes.
  void replace(const std::vector<std::size_t>& numbers, const TensorProto& constant) {
    std::vector<NodeRef> nodes;
    for (const std::size_t number : numbers) nodes.push_back(edit_.node_of(number));
    while (!nodes.empty()) nodes = replace_together(nodes, constant);
  }

  /// Names of constants that lost a reader but not the last one.
  std::vector<std::string> kept_sources() const {
    std::set<std::string> names;
    for (const int source : sources_) {
      if (edit_.is_read(source)) names.insert(index_.value(source).name);
    }
    return {names.begin(), names.end()};
  }

  void apply() {
    // Scales and zero points that a Constant node gives and that are still read become initialisers, as the codes are:
    // engines look for the parameters of a dequantization there.
    for (const int parameter : parameters_) {
      if (edit_.is_read(parameter) && !index_.value(parameter).is_output) edit_.make_initializer(parameter);
    }
    edit_.apply();
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
    const std::string name = moves_out ? edit_.new_name(first_output + "_shared") : first_output;
    for (const NodeRef node : together) {
      if (moves_out || node == together.front() || sees(node, home, name)) {
        replace_node(node, name);
      } else {
        others.push_back(node);
      }
    }
    TensorProto named = constant;
    named.set_name(name);
    edit_.add_constant(home, std::move(named));
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

  void replace_node(NodeRef ref, const std::string& name) {
    NodeProto& node = index_.node(ref);
    const std::string old_name = node.output(0);
    if (old_name != name) {
      rename_reads(output_of(ref).readers, old_name, name);
      edit_.forget_name(ref.scope, old_name);
    }
    sources_.push_back(index_.source_of(index_.resolve(ref.scope, node.input(0))));
    for (int i = 1; i < node.input_size(); ++i) {
      if (!node.input(i).empty()) parameters_.insert(index_.resolve(ref.scope, node.input(i)));
    }
    edit_.remove_node(ref);
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

  GraphEdit edit_;
  GraphIndex& index_;
  std::vector<int> sources_;  ///< values of the float constants behind replaced nodes
  std::set<int> parameters_;  ///< values of scales and zero points of replaced nodes
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
