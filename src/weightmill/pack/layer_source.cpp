#include "layer_source.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/narrow.h>

namespace weightmill {
namespace {

/// Internal: an obstacle that becomes a NotPacked's reason. Never leaves this file.
struct Obstacle {
  std::string reason;
};

template <class... Args>
[[nodiscard]] Obstacle because(fmt::format_string<Args...> text, Args&&... args) {
  return {fmt::format(text, std::forward<Args>(args)...)};
}

using Maybe = std::optional<Obstacle>;

/// The steps of LSTM gates before sigmoid and tanh: 12 bits behind the point.
constexpr float kGateScale = 1.0f / 4096;

/// Which tensors of a node play which part; -1: none.
struct Roles {
  std::string role = "weights";
  int weights = -1, bias = -1, ifm = -1, ofm = -1;
  float fixed_ofm_scale = 0;  ///< where there is no ofm tensor: what the operator computes in
};

class LayerFinder {
 public:
  LayerFinder(const Model& model, int subgraph, int node, ScalingRule rule)
      : graph_(model.subgraphs[static_cast<std::size_t>(subgraph)]),
        node_(graph_.nodes[static_cast<std::size_t>(node)]),
        subgraph_(subgraph),
        node_number_(node),
        rule_(rule) {}

  void find(std::vector<FoundLayer>& out) const;

 private:
  FoundLayer examine(const Roles& roles) const;
  Maybe first_obstacle(LayerSource& source, const Roles& roles) const;
  Maybe take_weights(LayerSource& source, const Roles& roles) const;
  Maybe take_ifm(LayerSource& source, const Roles& roles) const;
  Maybe take_shape(LayerSource& source) const;
  Maybe take_depthwise(LayerSource& source) const;
  Maybe take_attributes(LayerSource& source) const;
  Maybe take_zero_points(LayerSource& source) const;
  Maybe take_scales(LayerSource& source, const Roles& roles) const;
  Maybe take_bias(LayerSource& source, const Roles& roles) const;
  void take_names(LayerSource& source, const Roles& roles) const;
  void take_ofm(LayerSource& source) const;

  std::vector<Roles> roles_of_node() const;
  std::vector<Roles> lstm_roles() const;
  std::vector<Roles> svdf_roles() const;
  void list_lstm_extras(std::vector<FoundLayer>& out) const;

  const Tensor* tensor(int number) const;
  int input(std::size_t slot) const { return slot < node_.inputs.size() ? node_.inputs[slot] : -1; }
  int output() const { return node_.outputs.empty() ? -1 : node_.outputs.front(); }
  std::string where() const {
    return fmt::format("subgraph {}, operator {} ({})", subgraph_, node_number_, node_.op_name);
  }
  NotPacked not_packed(const Roles& roles, std::string reason) const;
  std::optional<float> scale_of(const Tensor* tensor, float fixed) const;

  const Subgraph& graph_;
  const Node& node_;
  int subgraph_;
  int node_number_;
  ScalingRule rule_;
};

/// The tensor, or nothing for -1.
const Tensor* LayerFinder::tensor(int number) const {
  if (number == -1) return nullptr;
  if (number < 0 || static_cast<std::size_t>(number) >= graph_.tensors.size()) {
    fail(ErrorCode::bad_file, where(), fmt::format("names tensor {} of {}", number, graph_.tensors.size()));
  }
  return &graph_.tensors[static_cast<std::size_t>(number)];
}

NotPacked LayerFinder::not_packed(const Roles& roles, std::string reason) const {
  const Tensor* weights = tensor(roles.weights);
  return {subgraph_, node_number_, node_.op_name, weights != nullptr ? weights->name : "", std::move(reason)};
}

// ---- Which tensors are weights ------------------------------------------------------------------------------------

/// TFLite's full LSTM kernel: inputs 1-4 meet the input, 5-8 the output state (18), 12-15 are the biases.
std::vector<Roles> LayerFinder::lstm_roles() const {
  constexpr std::array<std::string_view, 4> kGates{"input", "forget", "cell", "output"};
  constexpr std::size_t kFirstBias = 12, kOutputState = 18;
  std::vector<Roles> roles;
  for (const bool recurrent : {false, true}) {
    for (std::size_t gate = 0; gate < kGates.size(); ++gate) {
      Roles r;
      r.role = fmt::format("{}_to_{}", recurrent ? "recurrent" : "input", kGates[gate]);
      r.weights = input((recurrent ? 5 : 1) + gate);
      r.ifm = recurrent ? input(kOutputState) : input(0);
      r.bias = recurrent ? -1 : input(kFirstBias + gate);  // one bias for both products; it goes with the first
      r.fixed_ofm_scale = kGateScale;
      if (r.weights != -1) roles.push_back(std::move(r));
    }
  }
  return roles;
}

/// TFLite's SVDF: feature weights [filters, I] meet the input, time weights [filters, memory] the state.
std::vector<Roles> LayerFinder::svdf_roles() const {
  const int state = input(4);
  Roles feature{"feature", input(1), -1, input(0), state, 0};
  Roles time{"time", input(2), input(3), state, output(), 0};
  return {feature, time};
}

std::vector<Roles> LayerFinder::roles_of_node() const {
  switch (node_.kind) {
    case OpKind::conv_2d:
    case OpKind::depthwise_conv_2d:
    case OpKind::conv_3d:
    case OpKind::fully_connected:
      return {{"weights", input(1), input(2), input(0), output(), 0}};
    case OpKind::transpose_conv_2d:
      return {{"weights", input(1), input(3), input(2), output(), 0}};
    case OpKind::lstm:
    case OpKind::unidirectional_sequence_lstm:
      return lstm_roles();
    case OpKind::svdf:
      return svdf_roles();
    case OpKind::other:
      break;
  }
  return {};
}

/// Operators with weights that no Ethos-U operation takes: TFLite's names and ONNX's.
bool bears_weights_elsewhere(std::string_view op_name) {
  constexpr std::array<std::string_view, 12> kNames{"BATCH_MATMUL",
                                                    "BIDIRECTIONAL_SEQUENCE_LSTM",
                                                    "BIDIRECTIONAL_SEQUENCE_RNN",
                                                    "RNN",
                                                    "UNIDIRECTIONAL_SEQUENCE_RNN",
                                                    "EMBEDDING_LOOKUP",
                                                    "EMBEDDING_LOOKUP_SPARSE",
                                                    "CONV_3D_TRANSPOSE",
                                                    "MatMul",
                                                    "LSTM",
                                                    "GRU",
                                                    "EmbeddingBag"};
  return std::ranges::find(kNames, op_name) != kNames.end();
}

void LayerFinder::find(std::vector<FoundLayer>& out) const {
  if (node_.kind == OpKind::other && bears_weights_elsewhere(node_.op_name)) {
    const auto constant = std::ranges::find_if(node_.inputs, [&](int i) {
      const Tensor* t = tensor(i);
      return t != nullptr && t->constant;
    });
    if (constant == node_.inputs.end()) return;
    out.emplace_back(
        not_packed({"weights", *constant}, "Ethos-U has no operation that takes this operator's weights as a stream"));
    return;
  }
  const bool is_lstm = node_.kind == OpKind::lstm || node_.kind == OpKind::unidirectional_sequence_lstm;
  constexpr std::size_t kFullLstmInputs = 20;
  if (is_lstm && node_.inputs.size() < kFullLstmInputs) {
    out.emplace_back(not_packed({"weights", input(2)},
                                fmt::format("has {} inputs: the basic LSTM kernel; wanted the full one with {} or more",
                                            node_.inputs.size(), kFullLstmInputs)));
    return;
  }
  for (const Roles& roles : roles_of_node()) out.push_back(examine(roles));
  if (is_lstm) list_lstm_extras(out);
}

/// What a full LSTM may have besides its eight matrices.
void LayerFinder::list_lstm_extras(std::vector<FoundLayer>& out) const {
  constexpr std::array<std::pair<std::size_t, std::string_view>, 8> kExtras{{{9, "peephole weights"},
                                                                            {10, "peephole weights"},
                                                                            {11, "peephole weights"},
                                                                            {16, "a projection matrix"},
                                                                            {20, "layer normalisation"},
                                                                            {21, "layer normalisation"},
                                                                            {22, "layer normalisation"},
                                                                            {23, "layer normalisation"}}};
  for (const auto& [slot, what] : kExtras) {
    if (tensor(input(slot)) == nullptr) continue;
    out.emplace_back(not_packed({std::string(what), input(slot)},
                                fmt::format("{}: the gates' eight matrices are packed, nothing else of an LSTM", what)));
  }
}

// ---- Whether a matrix can be packed -------------------------------------------------------------------------------

FoundLayer LayerFinder::examine(const Roles& roles) const {
  LayerSource source;
  take_names(source, roles);
  if (node_.kind == OpKind::conv_3d) return not_packed(roles, "a 3-D convolution; Ethos-U convolves in two dimensions");
  if (const Maybe obstacle = first_obstacle(source, roles)) return not_packed(roles, obstacle->reason);
  take_ofm(source);
  return source;
}

Maybe LayerFinder::first_obstacle(LayerSource& source, const Roles& roles) const {
  if (Maybe obstacle = take_weights(source, roles)) return obstacle;
  if (Maybe obstacle = take_ifm(source, roles)) return obstacle;
  if (Maybe obstacle = take_shape(source)) return obstacle;
  if (Maybe obstacle = take_attributes(source)) return obstacle;
  if (Maybe obstacle = take_zero_points(source)) return obstacle;
  if (Maybe obstacle = take_scales(source, roles)) return obstacle;
  return take_bias(source, roles);
}

void LayerFinder::take_names(LayerSource& source, const Roles& roles) const {
  PackedLayer& layer = source.layer;
  layer.subgraph = subgraph_;
  layer.node = node_number_;
  layer.kind = node_.kind;
  layer.op_name = node_.op_name;
  layer.role = roles.role;
  layer.weights_tensor = roles.weights;
  layer.bias_tensor = roles.bias;
  layer.ifm_tensor = roles.ifm;
  layer.ofm_tensor = roles.ofm;
  const auto name = [&](int number) {
    const Tensor* t = tensor(number);
    return t != nullptr ? t->name : std::string();
  };
  layer.weights_name = name(roles.weights);
  layer.bias_name = name(roles.bias);
  layer.ifm_name = name(roles.ifm);
  layer.ofm_name = name(roles.ofm);
  source.weights = tensor(roles.weights);
}

Maybe LayerFinder::take_weights(LayerSource& source, const Roles& roles) const {
  const Tensor* weights = tensor(roles.weights);
  if (weights == nullptr) return because("has no weights");
  const DType dtype = weights->dtype;
  if (is_float(dtype)) return because("the weights are {}; quantize the model first", name_of(dtype));
  if (!weights->constant) return because("the weights are computed at run time; a stream needs constants");
  if (dtype != DType::i4 && dtype != DType::i8 && dtype != DType::u8 && dtype != DType::i16) {
    return because("the weights are {}; wanted int4, int8 or uint8", name_of(dtype));
  }
  const std::uint64_t wanted = size_bytes(weights->shape, dtype, weights->name);
  if (weights->data.size() < wanted) {
    fail(ErrorCode::bad_file, fmt::format("tensor '{}'", weights->name),
         fmt::format("has {} bytes, its shape {} takes {}", weights->data.size(), to_string(weights->shape), wanted));
  }
  source.layer.weights_dtype = dtype;
  return std::nullopt;
}

Maybe LayerFinder::take_ifm(LayerSource& source, const Roles& roles) const {
  const Tensor* ifm = tensor(roles.ifm);
  if (ifm == nullptr) return because("has no feature map");
  source.layer.ifm_dtype = ifm->dtype;
  if (is_float(ifm->dtype)) {
    return because(
        "the feature map is {} while the weights are {} (dynamic-range quantization); quantize the feature maps too",
        name_of(ifm->dtype), name_of(source.layer.weights_dtype));
  }
  if (ifm->dtype == DType::i8 || ifm->dtype == DType::u8 || ifm->dtype == DType::i16) return std::nullopt;
  return because("the feature map is {}; wanted int8, uint8 or int16", name_of(ifm->dtype));
}

/// O, H, W, I from a matrix or a four-dimensional tensor.
Maybe LayerFinder::take_shape(LayerSource& source) const {
  const Shape& shape = source.weights->shape;
  const bool matrix = node_.kind == OpKind::fully_connected || node_.kind == OpKind::svdf ||
                      node_.kind == OpKind::lstm || node_.kind == OpKind::unidirectional_sequence_lstm;
  constexpr std::int64_t kLargestExtent = 1 << 24;  // far beyond any layer; keeps the orders' arithmetic in int
  if (shape.size() != (matrix ? 2u : 4u))
    return because("the weights have shape {}; wanted {} extents", to_string(shape), matrix ? 2 : 4);
  for (const std::int64_t extent : shape) {
    if (extent < 1 || extent > kLargestExtent)
      return because("the weights have shape {}; wanted extents of 1..2^24", to_string(shape));
  }
  const auto at = [&](std::size_t axis) { return static_cast<int>(shape[axis]); };
  PackedLayer& layer = source.layer;
  layer.block_type = matrix ? NpuBlockType::vector_product : NpuBlockType::convolution;
  if (node_.kind == OpKind::depthwise_conv_2d) return take_depthwise(source);
  layer.ohwi = matrix ? std::array{at(0), 1, 1, at(1)} : std::array{at(0), at(1), at(2), at(3)};
  const Shape& ifm = tensor(layer.ifm_tensor)->shape;
  if (!matrix && ifm.size() == 4 && ifm[3] > 0 && ifm[3] != shape[3]) {
    return because(
        "a grouped convolution: the weights have {} input channels, the feature map {}; split it into one for each "
        "group",
        shape[3], ifm[3]);
  }
  return std::nullopt;
}

/// [1, H, W, C]. A single input channel makes it an ordinary convolution with C output channels.
Maybe LayerFinder::take_depthwise(LayerSource& source) const {
  const Shape& shape = source.weights->shape;
  if (shape[0] != 1) return because("the depthwise weights have shape {}; wanted [1, H, W, C]", to_string(shape));
  PackedLayer& layer = source.layer;
  layer.ohwi = {static_cast<int>(shape[3]), static_cast<int>(shape[1]), static_cast<int>(shape[2]), 1};
  source.depthwise_layout = true;
  const Shape& ifm = tensor(layer.ifm_tensor)->shape;
  const std::int64_t multiplier = node_.conv.depth_multiplier;
  const std::int64_t n_ifm = ifm.size() == 4 && ifm[3] > 0 ? ifm[3] : multiplier > 0 ? shape[3] / multiplier : 0;
  if (n_ifm == shape[3]) {
    layer.block_type = NpuBlockType::depthwise;
  } else if (n_ifm != 1) {
    return because(
        "a depthwise convolution from {} to {} channels; Ethos-U has depth multipliers for a single input channel only",
        n_ifm, shape[3]);
  }
  return std::nullopt;
}

Maybe LayerFinder::take_attributes(LayerSource& source) const {
  PackedLayer& layer = source.layer;
  layer.flipped = node_.kind == OpKind::transpose_conv_2d;
  if (node_.kind != OpKind::conv_2d && node_.kind != OpKind::depthwise_conv_2d) return std::nullopt;
  const ConvAttributes& conv = node_.conv;
  if (conv.stride_h < 1 || conv.stride_w < 1)
    return because("strides {}x{}; wanted at least 1", conv.stride_h, conv.stride_w);
  for (const int dilation : {conv.dilation_h, conv.dilation_w}) {
    if (dilation != 1 && dilation != 2) {
      return because("dilation {}x{}; Ethos-U has 1 and 2", conv.dilation_h, conv.dilation_w);
    }
  }
  layer.stride_y = conv.stride_h;
  layer.stride_x = conv.stride_w;
  layer.dilation_y = conv.dilation_h;
  layer.dilation_x = conv.dilation_w;
  return std::nullopt;
}

std::int64_t lowest(DType dtype) {
  return dtype == DType::i4 ? -8 : dtype == DType::i8 ? -128 : dtype == DType::u8 ? 0 : -32768;
}
std::int64_t highest(DType dtype) {
  return dtype == DType::i4 ? 7 : dtype == DType::i8 ? 127 : dtype == DType::u8 ? 255 : 32767;
}

Maybe LayerFinder::take_zero_points(LayerSource& source) const {
  const auto n_channels = static_cast<std::size_t>(source.layer.ohwi[0]);
  const std::vector<std::int64_t>& zero_point = source.weights->quantization.zero_point;
  source.layer.zero_point = zero_point.empty() ? std::vector<std::int64_t>{0} : zero_point;
  if (source.layer.zero_point.size() != 1 && source.layer.zero_point.size() != n_channels) {
    return because("{} weight zero points for {} output channels", zero_point.size(), n_channels);
  }
  const DType dtype = source.layer.weights_dtype;
  for (const std::int64_t z : source.layer.zero_point) {
    if (z < lowest(dtype) || z > highest(dtype)) {
      fail(ErrorCode::bad_file, fmt::format("tensor '{}'", source.weights->name),
           fmt::format("zero point {} is outside {}", z, name_of(dtype)));
    }
  }
  if (dtype == DType::i16 && has_weight_out_of_range(weights_of(source).volume)) {
    return because("an int16 weight is outside -255..255, which is all that a stream can carry");
  }
  return std::nullopt;
}

std::optional<float> LayerFinder::scale_of(const Tensor* tensor, float fixed) const {
  if (tensor == nullptr) return fixed > 0 ? std::optional(fixed) : std::nullopt;
  if (!tensor->quantization.scale.empty()) return tensor->quantization.scale.front();
  return rule_ == ScalingRule::vela5 ? std::optional(1.0f) : std::nullopt;
}

bool usable(float scale) { return scale > 0 && scale <= std::numeric_limits<float>::max(); }

Maybe LayerFinder::take_scales(LayerSource& source, const Roles& roles) const {
  PackedLayer& layer = source.layer;
  const auto ifm = scale_of(tensor(roles.ifm), 0), ofm = scale_of(tensor(roles.ofm), roles.fixed_ofm_scale);
  const auto weight = scale_of(source.weights, 0);
  if (!ifm || !ofm || !weight) {
    return because("the {} no quantization; wanted a scale", !ifm   ? "feature map has"
                                                             : !ofm ? "output has"
                                                                    : "weights have");
  }
  if (!usable(*ifm) || !usable(*ofm))
    return because("the {} has scale {}; wanted a positive number", !usable(*ifm) ? "feature map" : "output",
                   !usable(*ifm) ? *ifm : *ofm);
  layer.ifm_scale = *ifm;
  layer.ofm_scale = *ofm;
  layer.weight_scale = source.weights->quantization.scale;
  if (layer.weight_scale.empty()) layer.weight_scale = {*weight};
  const std::size_t n = layer.weight_scale.size();
  const int axis = source.depthwise_layout ? 3 : 0;
  if (n != 1 && n != static_cast<std::size_t>(layer.ohwi[0]))
    return because("{} weight scales for {} output channels", n, layer.ohwi[0]);
  if (n != 1 && source.weights->quantization.axis != axis) {
    return because("the weight scales run along axis {}; wanted {}, the output channels",
                   source.weights->quantization.axis, axis);
  }
  for (std::size_t c = 0; c < n; ++c) {
    if (!usable(layer.weight_scale[c]))
      return because("weight scale {} of channel {}; wanted a positive number", layer.weight_scale[c], c);
  }
  const Activation fused = node_.conv.activation;
  layer.rescaled_for_activation =
      rule_ == ScalingRule::v2020 && (fused == Activation::sigmoid || fused == Activation::tanh);
  return std::nullopt;
}

template <class T>
std::vector<std::int64_t> read_integers(std::span<const std::uint8_t> bytes, std::size_t n) {
  std::vector<std::int64_t> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    T value{};
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = value;
  }
  return values;
}

Maybe LayerFinder::take_bias(LayerSource& source, const Roles& roles) const {
  const auto n_channels = static_cast<std::size_t>(source.layer.ohwi[0]);
  const Tensor* bias = tensor(roles.bias);
  if (bias == nullptr) {
    source.bias.assign(n_channels, 0);
    return std::nullopt;
  }
  if (!bias->constant) return because("the bias is computed at run time; a record needs constants");
  if (bias->dtype != DType::i32 && bias->dtype != DType::i64)
    return because("the bias is {}; wanted int32 or int64", name_of(bias->dtype));
  const std::uint64_t n = n_elements(bias->shape, bias->name);
  if (n != n_channels) return because("{} biases for {} output channels", n, n_channels);
  if (bias->data.size() < size_bytes(bias->shape, bias->dtype, bias->name)) {
    fail(ErrorCode::bad_file, fmt::format("tensor '{}'", bias->name), "has fewer bytes than its shape takes");
  }
  source.bias_is_64_bit = bias->dtype == DType::i64;
  source.bias = source.bias_is_64_bit ? read_integers<std::int64_t>(bias->data, n_channels)
                                      : read_integers<std::int32_t>(bias->data, n_channels);
  return std::nullopt;
}

/// Width, height and depth of the output, for the choice of U85's ublock.
void LayerFinder::take_ofm(LayerSource& source) const {
  constexpr std::int64_t kLargest = 1 << 16;
  source.ofm = {1, 1, source.layer.ohwi[0]};
  const Tensor* ofm = tensor(source.layer.ofm_tensor);
  if (ofm == nullptr || source.layer.block_type == NpuBlockType::vector_product || ofm->shape.size() != 4) return;
  source.ofm.height = static_cast<int>(std::clamp<std::int64_t>(ofm->shape[1], 1, kLargest));
  source.ofm.width = static_cast<int>(std::clamp<std::int64_t>(ofm->shape[2], 1, kLargest));
}

}  // namespace

std::vector<FoundLayer> find_layers(const Model& model, ScalingRule rule) {
  std::vector<FoundLayer> found;
  for (std::size_t s = 0; s < model.subgraphs.size(); ++s) {
    for (std::size_t n = 0; n < model.subgraphs[s].nodes.size(); ++n) {
      LayerFinder(model, narrow<int>(s, "subgraphs"), narrow<int>(n, "operators"), rule).find(found);
    }
  }
  return found;
}

namespace {

std::vector<std::int8_t> widen_int4(std::span<const std::uint8_t> bytes, std::size_t n) {
  std::vector<std::int8_t> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const unsigned nibble = bytes[i / 2] >> (4 * (i % 2)) & 0xf;
    values[i] = static_cast<std::int8_t>(nibble >= 8 ? static_cast<int>(nibble) - 16 : static_cast<int>(nibble));
  }
  return values;
}

WeightVolume shaped(WeightValues values, const LayerSource& source, int zero_point) {
  const WeightVolume volume = source.depthwise_layout ? volume_from_hwio(values, source.layer.ohwi, zero_point)
                                                      : volume_from_ohwi(values, source.layer.ohwi, zero_point);
  return source.layer.flipped ? flipped(volume) : volume;
}

WeightValues values_of(const LayerSource& source, LayerWeights& memory) {
  const std::span<const std::uint8_t> bytes = source.weights->data;
  const auto n = static_cast<std::size_t>(n_elements(source.weights->shape, source.weights->name));
  switch (source.layer.weights_dtype) {
    case DType::i8:
      return std::span(reinterpret_cast<const std::int8_t*>(bytes.data()), n);
    case DType::u8:
      return bytes.first(n);
    case DType::i16: {
      std::vector<std::int16_t> values(n);  // a copy: the file need not align them
      std::memcpy(values.data(), bytes.data(), n * sizeof(std::int16_t));
      memory.subtracted = std::make_shared<const std::vector<std::int16_t>>(std::move(values));
      return std::span(*memory.subtracted);
    }
    default:
      memory.widened = std::make_shared<const std::vector<std::int8_t>>(widen_int4(bytes, n));
      return std::span(*memory.widened);
  }
}

/// Each output channel with its own zero point subtracted, in the same layout.
std::vector<std::int16_t> subtract(const WeightValues& values, const LayerSource& source) {
  const auto& zero_point = source.layer.zero_point;
  const std::size_t n_channels = zero_point.size();
  return std::visit(
      [&](const auto& span) {
        const std::size_t inner = span.size() / n_channels;
        std::vector<std::int16_t> result(span.size());
        for (std::size_t k = 0; k < span.size(); ++k) {
          const std::size_t channel = source.depthwise_layout ? k % n_channels : k / inner;
          result[k] = static_cast<std::int16_t>(span[k] - zero_point[channel]);
        }
        return result;
      },
      values);
}

}  // namespace

LayerWeights weights_of(const LayerSource& source) {
  LayerWeights result;
  const WeightValues values = values_of(source, result);
  const auto& zero_point = source.layer.zero_point;
  const bool uniform = std::ranges::all_of(zero_point, [&](std::int64_t z) { return z == zero_point.front(); });
  if (uniform) {
    result.volume = shaped(values, source, static_cast<int>(zero_point.front()));
  } else {
    result.subtracted = std::make_shared<const std::vector<std::int16_t>>(subtract(values, source));
    result.volume = shaped(std::span(*result.subtracted), source, 0);
  }
  return result;
}

}  // namespace weightmill
