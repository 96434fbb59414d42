#include "onnx_model.h"

#include <algorithm>

#include <fmt/format.h>

#include <weightmill/base/error.h>

#include "tensor_types.h"
#include "wire.h"

namespace weightmill {
namespace {

using namespace onnx_file;
using Visit = std::function<void(TensorProto&, TensorPlace)>;

void visit_graph(GraphProto& graph, const Visit& visit);

void visit_sparse(SparseTensorProto& sparse, const Visit& visit) {
  if (sparse.has_values()) visit(*sparse.mutable_values(), TensorPlace::elsewhere);
  if (sparse.has_indices()) visit(*sparse.mutable_indices(), TensorPlace::elsewhere);
}

void visit_attribute(AttributeProto& attribute, const Visit& visit) {
  if (attribute.has_t()) visit(*attribute.mutable_t(), TensorPlace::elsewhere);
  if (attribute.has_g()) visit_graph(*attribute.mutable_g(), visit);
  if (attribute.has_sparse_tensor()) visit_sparse(*attribute.mutable_sparse_tensor(), visit);
  for (TensorProto& tensor : *attribute.mutable_tensors()) visit(tensor, TensorPlace::elsewhere);
  for (GraphProto& graph : *attribute.mutable_graphs()) visit_graph(graph, visit);
  for (SparseTensorProto& sparse : *attribute.mutable_sparse_tensors()) visit_sparse(sparse, visit);
}

void visit_node(NodeProto& node, const Visit& visit) {
  for (AttributeProto& attribute : *node.mutable_attribute()) visit_attribute(attribute, visit);
}

/// Recursive: protobuf's parser has refused what nests more than 100 deep.
void visit_graph(GraphProto& graph, const Visit& visit) {
  for (TensorProto& tensor : *graph.mutable_initializer()) visit(tensor, TensorPlace::initializer);
  for (SparseTensorProto& sparse : *graph.mutable_sparse_initializer()) visit_sparse(sparse, visit);
  for (NodeProto& node : *graph.mutable_node()) visit_node(node, visit);
}

/// Parses a model whose payloads stay where they are in the file.
void parse_without_payloads(const std::shared_ptr<const MappedFile>& file, ModelProto& proto, PayloadTable& payloads) {
  static constexpr std::size_t kHandleBytes = 8;  // PayloadTable::add()
  const auto bytes = file->bytes();
  const RawDataReplacer cut(bytes, file->name(), [](auto) { return kHandleBytes; });
  std::string skeleton;
  skeleton.reserve(cut.size_bytes());
  const auto append = [&](std::span<const std::uint8_t> part) {
    skeleton.append(reinterpret_cast<const char*>(part.data()), part.size());
  };
  cut.write(
      [&](std::span<const std::uint8_t> raw_data, const RawDataReplacer::Sink&) {
        const auto offset = static_cast<std::size_t>(raw_data.data() - bytes.data());
        skeleton += payloads.add(mapped_payload(file, raw_data.empty() ? 0 : offset, raw_data.size()));
      },
      append);
  file->release(0, bytes.size());
  if (!proto.ParseFromString(skeleton)) fail(ErrorCode::bad_file, file->name(), "is damaged, or no ONNX model");
  if (!proto.has_graph()) fail(ErrorCode::bad_file, file->name(), "is no ONNX model: it holds no graph");
}

void check_size(const TensorProto& tensor, std::optional<std::uint64_t> needed, std::uint64_t found) {
  if (!needed || *needed == found) return;
  fail(ErrorCode::bad_file, where_of(tensor),
       fmt::format("shape {} needs {} bytes, but its data has {}", to_string(shape_of(tensor)), *needed, found));
}

std::int64_t version_in(const google::protobuf::RepeatedPtrField<OperatorSetIdProto>& imports) {
  for (const OperatorSetIdProto& import : imports) {
    if (import.domain().empty() || import.domain() == "ai.onnx") return import.version();
  }
  return 0;
}

}  // namespace

void for_each_tensor(ModelProto& model, const Visit& visit) {
  visit_graph(*model.mutable_graph(), visit);
  for (FunctionProto& function : *model.mutable_functions()) {
    for (NodeProto& node : *function.mutable_node()) visit_node(node, visit);
    for (AttributeProto& attribute : *function.mutable_attribute_proto()) visit_attribute(attribute, visit);
  }
  for (TrainingInfoProto& training : *model.mutable_training_info()) {
    if (training.has_initialization()) visit_graph(*training.mutable_initialization(), visit);
    if (training.has_algorithm()) visit_graph(*training.mutable_algorithm(), visit);
  }
}

std::int64_t opset_of(const ModelProto& model, const GraphIndex& index, int scope) {
  while (index.scope(scope).parent >= 0) scope = index.scope(scope).parent;
  const FunctionProto* function = index.scope(scope).function;
  return version_in(function != nullptr ? function->opset_import() : model.opset_import());
}

OnnxModel::Impl::Impl(const std::filesystem::path& model)
    : path(model), file(std::make_shared<const MappedFile>(model)), external(model) {
  parse_without_payloads(file, proto, payloads);
  for_each_tensor(proto, [this](TensorProto& tensor, TensorPlace) {
    const auto needed = needed_bytes(tensor);
    if (tensor.data_location() == TensorProto::EXTERNAL) {
      had_external_data = true;
      tensor.set_raw_data(payloads.add(external.open(tensor, needed)));
    } else if (tensor.has_raw_data()) {
      check_size(tensor, needed, payloads.at(tensor.raw_data()).size_bytes);
    }
  });
  index();  // refuses what no later step could work with
}

OnnxModel::OnnxModel(const std::filesystem::path& path) : impl_(std::make_unique<Impl>(path)) {}
OnnxModel::~OnnxModel() = default;
OnnxModel::OnnxModel(OnnxModel&&) noexcept = default;
OnnxModel& OnnxModel::operator=(OnnxModel&&) noexcept = default;

const std::filesystem::path& OnnxModel::path() const { return impl_->path; }

std::vector<std::filesystem::path> OnnxModel::files() const {
  std::vector<std::filesystem::path> result = impl_->external.files();
  result.insert(result.begin(), impl_->path);
  return result;
}

std::function<void(std::uint64_t, std::span<float>)> OnnxModel::reader(const OnnxConstant& constant) const {
  if (!TileCache::helps(constant))
    return [constant](std::uint64_t first, std::span<float> out) { read_floats(constant, first, out); };
  return [constant, tiles = impl_->tiles, number = impl_->n_readers++](std::uint64_t first, std::span<float> out) {
    tiles->read(constant, number, first, out);
  };
}

std::uint64_t OnnxModel::size_bytes() const { return impl_->file->bytes().size() + impl_->external.size_bytes(); }

}  // namespace weightmill
