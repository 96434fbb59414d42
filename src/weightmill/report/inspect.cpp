#include "inspect.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <weightmill/model/dtype.h>

namespace weightmill {
namespace {

std::size_t ifm_input(OpKind kind) { return kind == OpKind::transpose_conv_2d ? 2 : 0; }

const Tensor* input_tensor(const Subgraph& subgraph, const Node& node, std::size_t input) {
  if (input >= node.inputs.size() || node.inputs[input] < 0) return nullptr;
  return &subgraph.tensors[static_cast<std::size_t>(node.inputs[input])];
}

/// How often each byte (or nibble) occurs.
std::array<std::uint64_t, 256> histogram_of(const Tensor& tensor) {
  std::array<std::uint64_t, 256> histogram{};
  if (size_bits(tensor.dtype) == 8) {
    for (const std::uint8_t byte : tensor.data) ++histogram[byte];
    return histogram;
  }
  for (const std::uint8_t byte : tensor.data) ++histogram[byte & 15u], ++histogram[byte >> 4];
  if (n_elements(tensor.shape, tensor.name) % 2 != 0)
    --histogram[tensor.data.back() >> 4];  // the last half byte is filling
  return histogram;
}

void add_statistics(const Tensor& tensor, InspectRow& row) {
  if (!tensor.constant || !is_integer(tensor.dtype) || size_bits(tensor.dtype) > 8 || tensor.data.empty()) return;
  const auto histogram = histogram_of(tensor);
  const auto n = static_cast<double>(row.n_weights);
  row.n_distinct = std::count_if(histogram.begin(), histogram.end(), [](std::uint64_t count) { return count > 0; });
  row.entropy_bits = 0;
  for (const std::uint64_t count : histogram) {
    if (count > 0) row.entropy_bits -= static_cast<double>(count) / n * std::log2(static_cast<double>(count) / n);
  }
  if (row.lowest_zero_point == row.highest_zero_point) {
    const unsigned mask = (1u << size_bits(tensor.dtype)) - 1;
    row.n_zero_weights = static_cast<std::int64_t>(histogram[static_cast<std::uint64_t>(row.lowest_zero_point) & mask]);
  }
}

InspectRow row_of(const Tensor& tensor, const Tensor* ifm) {
  InspectRow row;
  row.name = tensor.name;
  row.dtype = tensor.dtype;
  row.shape = tensor.shape;
  row.ifm_dtype = ifm != nullptr ? ifm->dtype : DType::other;
  row.n_scales = tensor.quantization.scale.size();
  const auto& points = tensor.quantization.zero_point;
  if (!points.empty()) {
    const auto [low, high] = std::minmax_element(points.begin(), points.end());
    row.lowest_zero_point = *low, row.highest_zero_point = *high;
  }
  row.constant = tensor.constant;
  row.sparse = tensor.sparse;
  row.size_bytes = tensor.data.size();
  if (tensor.constant) row.n_weights = n_elements(tensor.shape, tensor.name);
  add_statistics(tensor, row);
  return row;
}

std::string format_name(Format format) {
  return format == Format::tflite ? "TFLite" : format == Format::onnx ? "ONNX" : "OpenVINO IR";
}

}  // namespace

InspectReport inspect(const Model& model) {
  InspectReport report{
      model.path.filename().string(), format_name(model.format), model.description, model.subgraphs.size(), 0, 0, {}};
  for (std::size_t s = 0; s < model.subgraphs.size(); ++s) {
    const Subgraph& subgraph = model.subgraphs[s];
    report.n_operators += subgraph.nodes.size();
    report.n_tensors += subgraph.tensors.size();
    for (std::size_t n = 0; n < subgraph.nodes.size(); ++n) {
      const Node& node = subgraph.nodes[n];
      for (const std::size_t input : weight_inputs(node.kind)) {
        const Tensor* tensor = input_tensor(subgraph, node, input);
        if (tensor == nullptr) continue;
        InspectRow row = row_of(*tensor, input_tensor(subgraph, node, ifm_input(node.kind)));
        row.subgraph = static_cast<int>(s), row.node = static_cast<int>(n), row.op_name = node.op_name;
        report.rows.push_back(std::move(row));
      }
    }
  }
  return report;
}

nlohmann::ordered_json to_json(const InspectReport& report) {
  nlohmann::ordered_json json{{"schema", "weightmill.inspect/1"},  {"file", report.file},
                              {"format", report.format},           {"description", report.description},
                              {"n_subgraphs", report.n_subgraphs}, {"n_operators", report.n_operators},
                              {"n_tensors", report.n_tensors},     {"weights", nlohmann::ordered_json::array()}};
  for (const InspectRow& row : report.rows) {
    json["weights"].push_back({{"subgraph", row.subgraph},
                               {"node", row.node},
                               {"op_name", row.op_name},
                               {"name", row.name},
                               {"dtype", name_of(row.dtype)},
                               {"shape", row.shape},
                               {"ifm_dtype", name_of(row.ifm_dtype)},
                               {"n_scales", row.n_scales},
                               {"lowest_zero_point", row.lowest_zero_point},
                               {"highest_zero_point", row.highest_zero_point},
                               {"constant", row.constant},
                               {"sparse", row.sparse},
                               {"granularity", row.granularity},
                               {"note", row.note},
                               {"n_weights", row.n_weights},
                               {"size_bytes", row.size_bytes},
                               {"n_zero_weights", row.n_zero_weights},
                               {"n_distinct", row.n_distinct},
                               {"entropy_bits", row.entropy_bits}});
  }
  return json;
}

}  // namespace weightmill
