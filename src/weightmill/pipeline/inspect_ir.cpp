#include "inspect_ir.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/mapped_file.h>
#include <weightmill/fold/numbers.h>
#include <weightmill/formats/openvino.h>

#include "fold_ir.h"

namespace weightmill {
namespace {

namespace fs = std::filesystem;

/// Operators with weights, at any of their inputs that is a constant of two or more axes.
constexpr std::array<std::string_view, 14> kWeightOperators{
    "Convolution", "ConvolutionBackpropData", "GroupConvolution", "GroupConvolutionBackpropData",
    "BinaryConvolution", "DeformableConvolution", "MatMul", "Gather", "LSTMCell", "LSTMSequence",
    "GRUCell", "GRUSequence", "RNNCell", "RNNSequence"};
/// Operators that hand their first input on, in another shape or type.
constexpr std::array<std::string_view, 5> kMoves{"Convert", "Reshape", "Transpose", "Squeeze", "Unsqueeze"};

/// So many layers at most are looked through for a constant: real models have five or so.
constexpr int kMaxSteps = 64;

template <class List>
bool is_among(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

/// How a weight is stored, and what stands between it and its operator.
struct Weight {
  std::size_t constant = 0;
  std::optional<std::size_t> fake_quantize;
  std::optional<std::size_t> scale, zero_point;  ///< constants of a dequantization
};

class Inspector {
 public:
  Inspector(const Ir& ir, std::size_t g, const FoldReport& folds)
      : ir_(ir), g_(g), graph_(ir.graph(g)), folds_(folds) {}

  void add_rows(InspectReport& report);

 private:
  const IrLayer& at(std::size_t layer) const { return graph_.layers[layer]; }
  std::size_t source(std::size_t layer, std::size_t input) const { return at(layer).inputs[input].layer; }
  std::optional<std::size_t> constant_behind(std::size_t layer) const;
  std::optional<Weight> weight_behind(std::size_t layer) const;
  InspectRow row_of(const Weight& weight, std::size_t reader) const;
  void add_scales(const Weight& weight, InspectRow& row) const;
  std::string fate_of(const std::string& fake_quantize) const;

  const Ir& ir_;
  std::size_t g_;
  const IrGraph& graph_;
  const FoldReport& folds_;
};

std::optional<std::size_t> Inspector::constant_behind(std::size_t layer) const {
  for (int step = 0; step < kMaxSteps && is_among(kMoves, at(layer).type) && !at(layer).inputs.empty(); ++step)
    layer = source(layer, 0);
  return at(layer).payload ? std::optional(layer) : std::nullopt;
}

/// The Const that `layer` hands on, if it does nothing else but dequantize it.
std::optional<Weight> Inspector::weight_behind(std::size_t layer) const {
  Weight weight;
  for (int step = 0; !at(layer).payload; ++step) {
    const std::string& type = at(layer).type;
    if (step == kMaxSteps || !at(layer).constant || at(layer).inputs.empty()) return std::nullopt;
    if (type == "FakeQuantize") {
      weight.fake_quantize = layer;
    } else if (type == "Multiply" && !weight.scale) {
      weight.scale = constant_behind(source(layer, 1));
    } else if (type == "Subtract" && !weight.zero_point) {
      weight.zero_point = constant_behind(source(layer, 1));
    } else if (!is_among(kMoves, type)) {
      return std::nullopt;
    }
    layer = source(layer, 0);
  }
  weight.constant = layer;
  return weight;
}

/// What a fold would do with it.
std::string Inspector::fate_of(const std::string& fake_quantize) const {
  const auto row = std::ranges::find(folds_.tensors, fake_quantize, &FoldedTensor::name);
  if (row == folds_.tensors.end()) return "fake-quantized at run time";
  if (row->outcome == FoldOutcome::left) return fmt::format("fake-quantized at run time: {}", row->reason);
  return fmt::format("fake-quantized at run time: `weightmill fold` stores it as {}, {} -> {} bytes",
                     name_of(row->type_after), row->bytes_before, row->bytes_after);
}

void Inspector::add_scales(const Weight& weight, InspectRow& row) const {
  if (weight.fake_quantize) {
    for (const std::size_t input : {3u, 4u}) {
      if (const auto limit = constant_behind(source(*weight.fake_quantize, input)))
        row.n_scales = std::max<std::size_t>(row.n_scales, ir_.constant(g_, *limit).n_elements);
    }
    return;
  }
  if (!weight.scale) return;
  row.n_scales = ir_.constant(g_, *weight.scale).n_elements;
  if (!weight.zero_point) return;
  const IrConstant zero = ir_.constant(g_, *weight.zero_point);
  if (zero.type == nullptr || !can_load_floats(zero.type->dtype)) return;
  const Numbers numbers{zero.bytes, zero.type->dtype, zero.shape, zero.n_elements};
  for (std::uint64_t i = 0; i < numbers.size; ++i) {
    // Clamped so that any float can be shown.
    const auto point = static_cast<std::int64_t>(std::clamp(std::nearbyint(number_at(numbers, i)), -1e9f, 1e9f));
    row.lowest_zero_point = i == 0 ? point : std::min(row.lowest_zero_point, point);
    row.highest_zero_point = i == 0 ? point : std::max(row.highest_zero_point, point);
  }
}

InspectRow Inspector::row_of(const Weight& weight, std::size_t reader) const {
  const IrConstant constant = ir_.constant(g_, weight.constant);
  InspectRow row;
  row.subgraph = static_cast<int>(g_);
  row.node = static_cast<int>(reader);
  row.op_name = at(reader).type;
  row.name = at(weight.constant).name;
  row.dtype = constant.type == nullptr ? DType::other : constant.type->dtype;
  row.shape = constant.shape;
  row.constant = true;
  row.n_weights = constant.n_elements;
  row.size_bytes = constant.bytes.size();
  add_scales(weight, row);
  if (weight.fake_quantize) row.note = fate_of(at(*weight.fake_quantize).name);
  return row;
}

void Inspector::add_rows(InspectReport& report) {
  std::set<std::size_t> shown;  // FakeQuantize of an operator's weight
  for (std::size_t layer = 0; layer < graph_.layers.size(); ++layer) {
    if (at(layer).constant || !is_among(kWeightOperators, at(layer).type)) continue;
    for (const IrSource& input : at(layer).inputs) {
      const auto weight = weight_behind(input.layer);
      if (!weight || ir_.constant(g_, weight->constant).shape.size() < 2) continue;
      report.rows.push_back(row_of(*weight, layer));
      if (weight->fake_quantize) shown.insert(*weight->fake_quantize);
    }
  }
  for (std::size_t layer = 0; layer < graph_.layers.size(); ++layer) {
    if (at(layer).type != "FakeQuantize" || !at(layer).constant || shown.contains(layer)) continue;
    if (const auto weight = weight_behind(layer)) report.rows.push_back(row_of(*weight, layer));
  }
}

}  // namespace

bool is_ir_path(const fs::path& path) { return path.extension() == ".xml"; }

InspectReport inspect_ir(const fs::path& path) {
  const FoldReport folds = fold_ir(path, {}, {});
  const MappedFile xml(path);
  const fs::path bin_path = fs::path(path).replace_extension(".bin");
  std::optional<MappedFile> bin;
  if (fs::exists(bin_path)) bin.emplace(bin_path);
  const Ir ir(xml.bytes(), path.string(), bin ? bin->bytes() : std::span<const std::uint8_t>(), bin_path.string());
  InspectReport report;
  report.file = path.filename().string();
  report.format = "OpenVINO IR";
  report.n_subgraphs = ir.n_graphs();
  for (std::size_t g = 0; g < ir.n_graphs(); ++g) {
    for (const IrLayer& layer : ir.graph(g).layers) layer.payload ? ++report.n_tensors : ++report.n_operators;
    Inspector(ir, g, folds).add_rows(report);
  }
  return report;
}

}  // namespace weightmill
