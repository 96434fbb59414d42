#include <fmt/format.h>

#include <weightmill/base/error.h>

#include "container.h"
#include "operators.h"
#include "quote.h"
#include "tensors.h"

namespace weightmill {
namespace {

void read_tensors(Container& container, const tflite::SubGraph& source, Subgraph& subgraph, std::string_view where) {
  const auto* tensors = source.tensors();
  for (std::uint32_t i = 0; i < size_of(tensors); ++i) {
    const tflite::Tensor& tensor = *tensors->Get(i);
    const std::string_view name = tensor.name() == nullptr ? std::string_view() : tensor.name()->string_view();
    subgraph.tensors.push_back(read_tensor(container, tensor, fmt::format("{}: tensor {} {}", where, i, quote(name))));
  }
}

void read_operators(Container& container, const tflite::SubGraph& source, const std::vector<OperatorType>& types,
                    Subgraph& subgraph, std::string_view where) {
  const auto* operators = source.operators();
  for (std::uint32_t i = 0; i < size_of(operators); ++i) {
    subgraph.nodes.push_back(read_operator(container, *operators->Get(i), types, subgraph.tensors.size(),
                                           fmt::format("{}: operator {}", where, i)));
  }
}

Subgraph read_subgraph(Container& container, const tflite::SubGraph& source, const std::vector<OperatorType>& types,
                       std::string_view where) {
  Subgraph subgraph;
  subgraph.name = container.text(source.name());
  read_tensors(container, source, subgraph, where);
  read_operators(container, source, types, subgraph, where);
  subgraph.inputs = container.numbers<int>(source.inputs());
  subgraph.outputs = container.numbers<int>(source.outputs());
  check_tensor_indices(subgraph.inputs, 0, subgraph.tensors.size(), "input", where);
  check_tensor_indices(subgraph.outputs, 0, subgraph.tensors.size(), "output", where);
  return subgraph;
}

std::vector<Subgraph> read_subgraphs(Container& container) {
  const auto* subgraphs = container.root().subgraphs();
  if (size_of(subgraphs) == 0) fail(ErrorCode::bad_file, container.name(), "has no subgraph");
  const std::vector<OperatorType> types = read_operator_types(container);
  std::vector<Subgraph> result;
  for (std::uint32_t i = 0; i < subgraphs->size(); ++i) {
    result.push_back(
        read_subgraph(container, *subgraphs->Get(i), types, fmt::format("{}: subgraph {}", container.name(), i)));
  }
  return result;
}

std::vector<Metadata> read_metadata(Container& container) {
  std::vector<Metadata> result;
  const auto* metadata = container.root().metadata();
  for (std::uint32_t i = 0; i < size_of(metadata); ++i) {
    const tflite::Metadata& source = *metadata->Get(i);
    const auto data = container.buffer(source.buffer(), fmt::format("{}: metadata {}", container.name(), i));
    result.push_back({container.text(source.name()), data});
  }
  return result;
}

using TensorMaps = flatbuffers::Vector<flatbuffers::Offset<tflite::TensorMap>>;

std::vector<Signature::Argument> read_arguments(Container& container, const TensorMaps* source, std::size_t n_tensors,
                                                std::string_view where) {
  std::vector<Signature::Argument> arguments;
  for (std::uint32_t i = 0; i < size_of(source); ++i) {
    const tflite::TensorMap& map = *source->Get(i);
    if (map.tensor_index() >= n_tensors) {
      fail(ErrorCode::bad_file, where, fmt::format("argument {} is tensor {} of {}", i, map.tensor_index(), n_tensors));
    }
    arguments.push_back({container.text(map.name()), static_cast<int>(map.tensor_index())});
  }
  return arguments;
}

Signature read_signature(Container& container, const tflite::SignatureDef& source,
                         const std::vector<Subgraph>& subgraphs, std::string_view where) {
  if (source.subgraph_index() >= subgraphs.size()) {
    fail(ErrorCode::bad_file, where, fmt::format("is of subgraph {} of {}", source.subgraph_index(), subgraphs.size()));
  }
  const std::size_t n_tensors = subgraphs[source.subgraph_index()].tensors.size();
  Signature signature;
  signature.key = container.text(source.signature_key());
  signature.subgraph = static_cast<int>(source.subgraph_index());
  signature.inputs = read_arguments(container, source.inputs(), n_tensors, where);
  signature.outputs = read_arguments(container, source.outputs(), n_tensors, where);
  return signature;
}

std::vector<Signature> read_signatures(Container& container, const std::vector<Subgraph>& subgraphs) {
  std::vector<Signature> result;
  const auto* signatures = container.root().signature_defs();
  for (std::uint32_t i = 0; i < size_of(signatures); ++i) {
    result.push_back(read_signature(container, *signatures->Get(i), subgraphs,
                                    fmt::format("{}: signature {}", container.name(), i)));
  }
  return result;
}

}  // namespace

Model parse_tflite(std::span<const std::uint8_t> file, std::string_view name, const TfliteLimits& limits) {
  Container container(file, name, limits);
  Model model;
  model.format = Format::tflite;
  model.description = container.text(container.root().description());
  model.subgraphs = read_subgraphs(container);
  model.metadata = read_metadata(container);
  model.signatures = read_signatures(container, model.subgraphs);
  return model;
}

}  // namespace weightmill
