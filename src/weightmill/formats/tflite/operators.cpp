#include "operators.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/error.h>

#include "quote.h"

namespace weightmill {
namespace {

using tflite::BuiltinOperator;

/// Stands in `inputs` for an optional tensor that is absent.
constexpr int kNoTensor = -1;

/// Files from before there were more than 127 operators have only the narrow field, and newer ones put a placeholder
/// there.
BuiltinOperator builtin_of(const tflite::OperatorCode& code) {
  return std::max(static_cast<BuiltinOperator>(code.deprecated_builtin_code()), code.builtin_code());
}

std::string name_of_code(BuiltinOperator builtin) {
  const std::string name = tflite::EnumNameBuiltinOperator(builtin);
  return name.empty() ? fmt::format("BUILTIN_{}", static_cast<int>(builtin)) : name;
}

OperatorType read_operator_type(Container& container, const tflite::OperatorCode& code, std::string_view where) {
  const BuiltinOperator builtin = builtin_of(code);
  if (static_cast<int>(builtin) < 0)
    fail(ErrorCode::bad_file, where, fmt::format("is {}, wanted 0 or more", static_cast<int>(builtin)));
  if (builtin != BuiltinOperator::CUSTOM) return {builtin, name_of_code(builtin), code.version()};
  if (size_of(code.custom_code()) == 0) fail(ErrorCode::bad_file, where, "is a custom operator without a name");
  return {builtin, container.text(code.custom_code()), code.version()};
}

OpKind kind_of(BuiltinOperator builtin) {
  switch (builtin) {
    case BuiltinOperator::CONV_2D: return OpKind::conv_2d;
    case BuiltinOperator::DEPTHWISE_CONV_2D: return OpKind::depthwise_conv_2d;
    case BuiltinOperator::TRANSPOSE_CONV: return OpKind::transpose_conv_2d;
    case BuiltinOperator::FULLY_CONNECTED: return OpKind::fully_connected;
    case BuiltinOperator::CONV_3D: return OpKind::conv_3d;
    case BuiltinOperator::LSTM: return OpKind::lstm;
    case BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_LSTM: return OpKind::unidirectional_sequence_lstm;
    case BuiltinOperator::SVDF: return OpKind::svdf;
    default: return OpKind::other;
  }
}

Activation to_activation(tflite::ActivationFunctionType type, std::string_view where) {
  using enum tflite::ActivationFunctionType;
  switch (type) {
    case NONE: return Activation::none;
    case RELU: return Activation::relu;
    case RELU_N1_TO_1: return Activation::relu_n1_to_1;
    case RELU6: return Activation::relu6;
    case TANH: return Activation::tanh;
    case SIGN_BIT: return Activation::sign_bit;
  }
  fail(ErrorCode::bad_file, where,
       fmt::format("has a fused activation {} that no TFLite file has", static_cast<int>(type)));
}

Padding to_padding(tflite::Padding padding, std::string_view where) {
  switch (padding) {
    case tflite::Padding::SAME: return Padding::same;
    case tflite::Padding::VALID: return Padding::valid;
  }
  fail(ErrorCode::bad_file, where, fmt::format("has a padding {} that no TFLite file has", static_cast<int>(padding)));
}

/// `options` are there. What an engine would take for a missing table differs, so none is made up here.
template <class Options>
const Options& wanted(const Options* options, std::string_view where) {
  if (options == nullptr) fail(ErrorCode::bad_file, where, "has no options, or those of another operator");
  return *options;
}

/// What all convolutions say in the same words.
template <class Options>
ConvAttributes conv_attributes(const Options& options, std::string_view where) {
  ConvAttributes conv;
  conv.stride_h = options.stride_h();
  conv.stride_w = options.stride_w();
  conv.padding = to_padding(options.padding(), where);
  conv.activation = to_activation(options.fused_activation_function(), where);
  return conv;
}

template <class Options>
ConvAttributes dilated_conv_attributes(const Options& options, std::string_view where) {
  ConvAttributes conv = conv_attributes(options, where);
  conv.dilation_h = options.dilation_h_factor();
  conv.dilation_w = options.dilation_w_factor();
  return conv;
}

ConvAttributes depthwise_attributes(const tflite::DepthwiseConv2DOptions& options, std::string_view where) {
  ConvAttributes conv = dilated_conv_attributes(options, where);
  conv.depth_multiplier = options.depth_multiplier();
  return conv;
}

ConvAttributes conv_3d_attributes(const tflite::Conv3DOptions& options, std::string_view where) {
  ConvAttributes conv = dilated_conv_attributes(options, where);
  conv.stride_d = options.stride_d();
  conv.dilation_d = options.dilation_d_factor();
  return conv;
}

ConvAttributes fully_connected_attributes(const tflite::FullyConnectedOptions& options, std::string_view where) {
  ConvAttributes conv;
  conv.shuffled_weights = options.weights_format() != tflite::FullyConnectedOptionsWeightsFormat::DEFAULT;
  conv.activation = to_activation(options.fused_activation_function(), where);
  return conv;
}

void read_lstm(Node& node, const tflite::LSTMOptions& options, std::string_view where) {
  node.conv.activation = to_activation(options.fused_activation_function(), where);
  node.recurrent.cell_clip = options.cell_clip();
  node.recurrent.proj_clip = options.proj_clip();
  node.recurrent.basic_kernel = options.kernel_type() == tflite::LSTMKernelType::BASIC;
}

void read_sequence_lstm(Node& node, const tflite::UnidirectionalSequenceLSTMOptions& options, std::string_view where) {
  node.conv.activation = to_activation(options.fused_activation_function(), where);
  node.recurrent.cell_clip = options.cell_clip();
  node.recurrent.proj_clip = options.proj_clip();
  node.recurrent.time_major = options.time_major();
}

void read_svdf(Node& node, const tflite::SVDFOptions& options, std::string_view where) {
  node.conv.activation = to_activation(options.fused_activation_function(), where);
  node.recurrent.rank = options.rank();
}

void read_options(Node& node, const tflite::Operator& source, std::string_view where) {
  switch (node.kind) {
    case OpKind::conv_2d:
      node.conv = dilated_conv_attributes(wanted(source.builtin_options_as_Conv2DOptions(), where), where);
      return;
    case OpKind::depthwise_conv_2d:
      node.conv = depthwise_attributes(wanted(source.builtin_options_as_DepthwiseConv2DOptions(), where), where);
      return;
    case OpKind::transpose_conv_2d:
      node.conv = conv_attributes(wanted(source.builtin_options_as_TransposeConvOptions(), where), where);
      return;
    case OpKind::conv_3d:
      node.conv = conv_3d_attributes(wanted(source.builtin_options_as_Conv3DOptions(), where), where);
      return;
    case OpKind::fully_connected:
      node.conv = fully_connected_attributes(wanted(source.builtin_options_as_FullyConnectedOptions(), where), where);
      return;
    case OpKind::lstm: return read_lstm(node, wanted(source.builtin_options_as_LSTMOptions(), where), where);
    case OpKind::unidirectional_sequence_lstm:
      return read_sequence_lstm(node, wanted(source.builtin_options_as_UnidirectionalSequenceLSTMOptions(), where),
                                where);
    case OpKind::svdf: return read_svdf(node, wanted(source.builtin_options_as_SVDFOptions(), where), where);
    case OpKind::other: return;
  }
}

std::span<const std::uint8_t> custom_options(const Container& container, const tflite::Operator& source,
                                             std::string_view where) {
  if (source.custom_options() != nullptr) return {source.custom_options()->Data(), source.custom_options()->size()};
  if (source.large_custom_options_offset() <= 1 || source.large_custom_options_size() == 0) return {};
  return container.outside(source.large_custom_options_offset(), source.large_custom_options_size(), where);
}

}  // namespace

std::vector<OperatorType> read_operator_types(Container& container) {
  std::vector<OperatorType> types;
  const auto* codes = container.root().operator_codes();
  for (std::uint32_t i = 0; i < size_of(codes); ++i) {
    types.push_back(
        read_operator_type(container, *codes->Get(i), fmt::format("{}: operator code {}", container.name(), i)));
  }
  return types;
}

Node read_operator(Container& container, const tflite::Operator& source, const std::vector<OperatorType>& types,
                   std::size_t n_tensors, std::string_view where) {
  if (source.opcode_index() >= types.size()) {
    fail(ErrorCode::bad_file, where, fmt::format("has operator code {} of {}", source.opcode_index(), types.size()));
  }
  const OperatorType& type = types[source.opcode_index()];
  const std::string named = fmt::format("{} ({})", where, quote(type.name));
  Node node;
  node.kind = kind_of(type.builtin);
  node.op_name = type.name;
  node.custom = type.builtin == BuiltinOperator::CUSTOM;
  node.version = type.version;
  node.inputs = container.numbers<int>(source.inputs());
  node.outputs = container.numbers<int>(source.outputs());
  node.intermediates = container.numbers<int>(source.intermediates());
  check_tensor_indices(node.inputs, kNoTensor, n_tensors, "input", named);
  check_tensor_indices(node.outputs, 0, n_tensors, "output", named);
  check_tensor_indices(node.intermediates, kNoTensor, n_tensors, "intermediate", named);
  read_options(node, source, named);
  node.custom_options = custom_options(container, source, named);
  return node;
}

void check_tensor_indices(const std::vector<int>& tensors, int lowest, std::size_t n_tensors, std::string_view role,
                          std::string_view where) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i] < lowest || std::cmp_greater_equal(tensors[i], n_tensors)) {
      fail(ErrorCode::bad_file, where, fmt::format("{} {} is tensor {} of {}", role, i, tensors[i], n_tensors));
    }
  }
}

}  // namespace weightmill
