#include "inspect_onnx.h"

#include <weightmill/formats_onnx/onnx.h>

namespace weightmill {
namespace {

std::string note_of(const OnnxWeight& weight) {
  if (weight.quantization == "quantized at run time") {
    return "quantized at run time, stored as " + std::string(name_of(weight.stored_dtype)) +
           ": `weightmill fold` stores its codes";
  }
  return weight.graph.empty() ? "" : "in " + weight.graph;
}

InspectRow row_of(const OnnxWeight& weight) {
  InspectRow row;
  row.subgraph = weight.scope;
  row.node = weight.index;
  row.op_name = weight.op;
  row.name = weight.weight;
  row.dtype = weight.stored_dtype;
  row.shape = weight.shape;
  row.ifm_dtype = weight.activation_dtype;
  row.n_scales = weight.n_scales;
  row.lowest_zero_point = weight.lowest_zero_point;
  row.highest_zero_point = weight.highest_zero_point;
  row.constant = true;
  row.granularity = weight.granularity;
  row.note = note_of(weight);
  row.n_weights = n_elements(weight.shape, weight.weight);
  row.size_bytes = weight.bytes;
  return row;
}

}  // namespace

bool is_onnx(const std::filesystem::path& path) { return path.extension() == ".onnx"; }

InspectReport inspect_onnx(const std::filesystem::path& path) {
  const OnnxModel model(path);
  const OnnxModel::Counts counts = model.counts();
  InspectReport report;
  report.file = path.filename().string();
  report.format = "ONNX";
  report.n_subgraphs = counts.scopes;
  report.n_operators = counts.nodes;
  report.n_tensors = counts.initializers;
  for (const OnnxWeight& weight : model.weights()) report.rows.push_back(row_of(weight));
  return report;
}

}  // namespace weightmill
