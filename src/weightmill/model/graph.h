#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <weightmill/base/mapped_file.h>
#include <weightmill/model/tensor.h>

namespace weightmill {

/// Operators this program computes with; everything else is `other` and known by its name alone.
enum class OpKind : std::uint8_t {
  conv_2d,            ///< inputs: ifm NHWC, weights OHWI, [bias O]
  depthwise_conv_2d,  ///< inputs: ifm NHWC, weights 1HWO, [bias O]
  transpose_conv_2d,  ///< inputs: output shape, weights OHWI, ifm NHWC, [bias O] (TFLite's order)
  fully_connected,    ///< inputs: ifm, weights OI, [bias O]
  conv_3d,
  lstm,
  unidirectional_sequence_lstm,
  svdf,
  other,
};

enum class Padding : std::uint8_t { same, valid, explicit_ };
enum class Activation : std::uint8_t { none, relu, relu6, relu_n1_to_1, tanh, sign_bit, sigmoid };

/// What a convolution-like operator says besides its tensors.
struct ConvAttributes {
  int stride_h = 1, stride_w = 1;
  int dilation_h = 1, dilation_w = 1;
  int depth_multiplier = 1;  ///< depthwise only
  Padding padding = Padding::valid;
  Activation activation = Activation::none;
};

/// One operator. Tensor numbers index the subgraph's `tensors`; -1 stands for an optional input that is absent.
struct Node {
  OpKind kind = OpKind::other;
  std::string op_name;  ///< the format's own word, e.g. "CONV_2D", or a custom operator's name
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::vector<int> intermediates;  ///< TFLite's LSTM: tensors that carry only quantization
  ConvAttributes conv;
};

struct Subgraph {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
  std::vector<int> inputs;
  std::vector<int> outputs;
};

enum class Format : std::uint8_t { tflite, onnx, openvino };

/// A model as a graph of look-ups. Weights stay views of the mapped file that `file` keeps alive.
struct Model {
  Format format = Format::tflite;
  std::filesystem::path path;
  std::string description;
  std::vector<Subgraph> subgraphs;  ///< the first is the main one
  std::shared_ptr<const MappedFile> file;
};

}  // namespace weightmill
