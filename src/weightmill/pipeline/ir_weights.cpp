#include "ir_weights.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace weightmill {
namespace {

/// Operators with weights, which of their inputs those are, and whether this program quantizes them.
struct WeightOperator {
  std::string_view type;
  std::array<std::size_t, 2> inputs;
  bool quantized;
};
constexpr std::size_t kNone = ~std::size_t{0};
constexpr std::array<WeightOperator, 12> kOperators{{{"Convolution", {1, kNone}, true},
                                                     {"GroupConvolution", {1, kNone}, true},
                                                     {"ConvolutionBackpropData", {1, kNone}, true},
                                                     {"GroupConvolutionBackpropData", {1, kNone}, true},
                                                     {"MatMul", {0, 1}, true},
                                                     {"Gather", {0, kNone}, true},
                                                     {"LSTMSequence", {4, 5}, false},
                                                     {"LSTMCell", {3, 4}, false},
                                                     {"GRUSequence", {3, 4}, false},
                                                     {"RNNSequence", {3, 4}, false},
                                                     {"GRUCell", {2, 3}, false},
                                                     {"RNNCell", {2, 3}, false}}};

/// Layers that quantized constants go through on their way to an operator, beside Convert and Reshape.
constexpr std::array<std::string_view, 7> kQuantizedSteps{"Multiply",  "Subtract", "Convert",  "Reshape",
                                                          "Transpose", "Squeeze",  "Unsqueeze"};

/// So many layers at most are looked through for a constant: real models have five or so.
constexpr std::size_t kMaxSteps = 64;

template <class List>
bool is_among(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

bool is_weight_type(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16 || type == DType::f64;
}

/// Whether each number of `from` is one of `to`.
bool widens(DType from, DType to) {
  return from == to || ((from == DType::f16 || from == DType::bf16) && to == DType::f32);
}

/// The numbers of a short integer constant; nothing if it is none.
std::optional<std::vector<std::int64_t>> integers_of(const IrConstant& constant) {
  constexpr std::uint64_t kMax = 64;  // axes
  if (constant.type == nullptr || constant.n_elements > kMax) return std::nullopt;
  const bool wide = constant.type->dtype == DType::i64;
  if (!wide && constant.type->dtype != DType::i32) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (std::uint64_t i = 0; i < constant.n_elements; ++i) {
    std::int64_t number = 0;
    std::int32_t narrow_number = 0;
    if (wide) {
      std::memcpy(&number, constant.bytes.data() + i * sizeof number, sizeof number);
    } else {
      std::memcpy(&narrow_number, constant.bytes.data() + i * sizeof narrow_number, sizeof narrow_number);
      number = narrow_number;
    }
    numbers.push_back(number);
  }
  return numbers;
}

/// What a Reshape to `target` makes of `n` elements of shape `from`; nothing if that does not fit. -1 stands for what
/// is left, 0 with `special_zero` for the extent that was there.
std::optional<Shape> reshaped(const Shape& from, std::uint64_t n, Shape target, bool special_zero) {
  std::optional<std::size_t> open;
  std::uint64_t product = 1;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && special_zero && i < from.size()) target[i] = from[i];
    if (target[i] == -1 && !open) {
      open = i;
      continue;
    }
    if (target[i] <= 0 || static_cast<std::uint64_t>(target[i]) > n / product) return std::nullopt;
    product *= static_cast<std::uint64_t>(target[i]);
  }
  if (open) target[*open] = static_cast<std::int64_t>(n / product);
  if (open ? n % product != 0 : n != product) return std::nullopt;
  return target;
}

/// Looks at one graph.
class WeightFinder {
 public:
  WeightFinder(const Ir& ir, std::size_t g) : ir_(ir), g_(g), graph_(ir.graph(g)) {}

  std::vector<IrFloatWeight> find() {
    for (std::size_t layer = 0; layer < graph_.layers.size(); ++layer) {
      const auto* op = std::ranges::find(kOperators, at(layer).type, &WeightOperator::type);
      if (op == kOperators.end() || at(layer).constant) continue;
      for (const std::size_t input : op->inputs) read(*op, layer, input);
    }
    name_other_readers();
    return std::move(found_);
  }

 private:
  const IrLayer& at(std::size_t layer) const { return graph_.layers[layer]; }
  std::size_t source(std::size_t layer, std::size_t input) const { return at(layer).inputs[input].layer; }
  std::string label(std::size_t layer) const {
    return at(layer).type == "Result" ? "an output of the graph" : at(layer).type + " " + at(layer).name;
  }
  bool flag(std::size_t layer, const char* key) const {
    const std::string text = ir_.attribute(g_, layer, key).value_or("");
    return text == "true" || text == "True" || text == "1";
  }

  void read(const WeightOperator& op, std::size_t layer, std::size_t input);
  bool follow(std::size_t from, IrFloatWeight& weight) const;
  std::string step(std::size_t layer, IrFloatWeight& weight) const;
  bool is_quantized(std::size_t layer) const;
  void set_axes(IrFloatWeight& weight) const;
  void set_matrix_axes(IrFloatWeight& weight) const;
  void set_gather_axes(IrFloatWeight& weight) const;
  void name_other_readers();
  std::string other_reader(std::size_t constant, const std::set<std::size_t>& passed,
                           const std::set<std::pair<std::size_t, std::size_t>>& weights) const;

  const Ir& ir_;
  std::size_t g_;
  const IrGraph& graph_;
  std::vector<IrFloatWeight> found_;
};

void WeightFinder::read(const WeightOperator& op, std::size_t layer, std::size_t input) {
  if (input >= at(layer).inputs.size() || !at(source(layer, input)).constant) return;
  IrFloatWeight weight;
  weight.graph = g_;
  weight.reader = {layer, input};
  if (!follow(source(layer, input), weight)) return;
  if (!op.quantized) weight.left_reason = fmt::format("weights of {} are not quantized", op.type);
  if (weight.left_reason.empty()) set_axes(weight);
  found_.push_back(std::move(weight));
}

/// Finds the constant that comes out of layer `from`. False: it holds no float weights.
bool WeightFinder::follow(std::size_t from, IrFloatWeight& weight) const {
  std::size_t layer = from;
  while ((at(layer).type == "Convert" || at(layer).type == "Reshape") && !at(layer).inputs.empty() &&
         weight.via.size() < kMaxSteps) {
    weight.via.push_back(layer);
    layer = source(layer, 0);
  }
  std::ranges::reverse(weight.via);
  weight.constant = layer;
  if (!at(layer).payload) {
    weight.left_reason = fmt::format("{} computes it from constants: have them folded first", at(layer).type);
    return !is_quantized(layer);
  }
  weight.data = ir_.constant(g_, layer);
  if (weight.data.type == nullptr || !is_weight_type(weight.data.type->dtype)) return false;
  weight.float_type = weight.data.type->dtype;
  weight.shape = weight.data.shape;
  if (weight.float_type == DType::f64) weight.left_reason = "its type is float64";
  if (weight.data.n_elements == 0) weight.left_reason = "it is empty";
  for (const std::size_t between : weight.via) {
    if (weight.left_reason.empty()) weight.left_reason = step(between, weight);
  }
  return true;
}

/// What a Convert or Reshape does to a weight; returns why it cannot be done to codes instead.
std::string WeightFinder::step(std::size_t layer, IrFloatWeight& weight) const {
  if (at(layer).type == "Convert") {
    const IrType* type = ir_type(ir_.attribute(g_, layer, "destination_type").value_or(""));
    if (type == nullptr || !widens(weight.float_type, type->dtype))
      return fmt::format("Convert {} changes it", at(layer).name);
    weight.float_type = type->dtype;
    return "";
  }
  const auto unknown = [&] { return fmt::format("the shape that Reshape {} gives it is not known", at(layer).name); };
  if (at(layer).inputs.size() != 2 || !at(source(layer, 1)).payload) return unknown();
  const auto target = integers_of(ir_.constant(g_, source(layer, 1)));
  if (!target) return unknown();
  auto shape = reshaped(weight.shape, weight.data.n_elements, *target, flag(layer, "special_zero"));
  if (!shape) return unknown();
  weight.shape = std::move(*shape);
  return "";
}

/// Whether `layer` dequantizes integers, or is behind a FakeQuantize.
bool WeightFinder::is_quantized(std::size_t layer) const {
  for (std::size_t steps = 0; steps < kMaxSteps; ++steps) {
    if (at(layer).type == "FakeQuantize" || at(layer).type == "FakeConvert") return true;
    if (at(layer).payload) {
      const IrConstant data = ir_.constant(g_, layer);
      return data.type == nullptr || !is_weight_type(data.type->dtype);
    }
    if (!is_among(kQuantizedSteps, at(layer).type) || at(layer).inputs.empty()) return false;
    layer = source(layer, 0);
  }
  return false;
}

/// Which axis has the output channels, and which one a dot product runs along.
void WeightFinder::set_axes(IrFloatWeight& weight) const {
  const std::string& type = at(weight.reader.layer).type;
  const std::size_t rank = weight.shape.size();
  if (rank == 0) {
    weight.no_channels = "it is a single number";
  } else if (type == "MatMul") {
    set_matrix_axes(weight);
  } else if (type == "Gather") {
    set_gather_axes(weight);
  } else {  // [O, I, …], [G, O/G, I/G, …], [I, O, …] and [G, I/G, O/G, …]
    weight.grouped = type.starts_with("Group");
    const std::size_t axis = (weight.grouped ? 1u : 0u) + (type.ends_with("BackpropData") ? 1u : 0u);
    weight.grouped = weight.grouped && axis < rank;
    if (axis < rank) weight.channel_axis = axis;
    if (axis >= rank) weight.no_channels = fmt::format("its shape {} has too few axes", to_string(weight.shape));
  }
}

/// y[m, n] = sum over k of a[m, k] b[k, n]; either may be the other way round.
void WeightFinder::set_matrix_axes(IrFloatWeight& weight) const {
  const std::size_t rank = weight.shape.size();
  if (rank < 2) {
    weight.no_channels = "it is a vector, with one output channel";
    return;
  }
  const bool second = weight.reader.input == 1;
  const bool channels_last = second != flag(weight.reader.layer, second ? "transpose_b" : "transpose_a");
  weight.channel_axis = rank - (channels_last ? 1 : 2);
  weight.block_axis = rank - (channels_last ? 2 : 1);
}

void WeightFinder::set_gather_axes(IrFloatWeight& weight) const {
  weight.no_channels = kScalesOfLookUps;
  const auto& inputs = at(weight.reader.layer).inputs;
  if (inputs.size() < 3 || !at(inputs[2].layer).payload) return;
  const auto axis = integers_of(ir_.constant(g_, inputs[2].layer));
  const bool first = axis && axis->size() == 1 &&
                     (axis->front() == 0 || axis->front() == -static_cast<std::int64_t>(weight.shape.size()));
  if (!first) return;
  weight.channel_axis = 0;
  weight.no_channels.clear();
}

void WeightFinder::name_other_readers() {
  std::set<std::size_t> passed;
  std::set<std::pair<std::size_t, std::size_t>> weights;
  for (const IrFloatWeight& weight : found_) {
    passed.insert(weight.via.begin(), weight.via.end());
    weights.emplace(weight.reader.layer, weight.reader.input);
  }
  std::map<std::size_t, std::string> readers;
  for (IrFloatWeight& weight : found_) {
    const auto [entry, is_new] = readers.try_emplace(weight.constant);
    if (is_new) entry->second = other_reader(weight.constant, passed, weights);
    weight.other_reader = entry->second;
  }
}

/// A layer that reads `constant`, also behind layers that pass weights on, and not as weights.
std::string WeightFinder::other_reader(std::size_t constant, const std::set<std::size_t>& passed,
                                       const std::set<std::pair<std::size_t, std::size_t>>& weights) const {
  std::vector<std::size_t> waiting{constant};
  while (!waiting.empty()) {
    const IrLayer& layer = at(waiting.back());
    waiting.pop_back();
    for (const IrUse& use : layer.uses) {
      if (use.input == 0 && passed.contains(use.layer)) {
        waiting.push_back(use.layer);
      } else if (!weights.contains({use.layer, use.input})) {
        return label(use.layer);
      }
    }
  }
  return "";
}

}  // namespace

const std::vector<std::string>& known_ir_types() {
  static const std::vector<std::string> kTypes = [] {
    std::vector<std::string> types;
    for (const WeightOperator& op : kOperators) {
      if (op.quantized) types.emplace_back(op.type);
    }
    return types;
  }();
  return kTypes;
}

const std::vector<std::string>& usual_ir_types() {
  static const std::vector<std::string> kTypes = [] {
    std::vector<std::string> types = known_ir_types();
    std::erase(types, "Gather");
    return types;
  }();
  return kTypes;
}

std::vector<IrFloatWeight> find_float_weights(const Ir& ir, std::size_t graph) {
  return WeightFinder(ir, graph).find();
}

}  // namespace weightmill
