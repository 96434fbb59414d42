#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
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
  conv_3d,            ///< inputs: ifm NDHWC, weights DHWIO, [bias O]
  lstm,               ///< one step; inputs in TFLite's order
  unidirectional_sequence_lstm,  ///< inputs in TFLite's order: 1-4 input weights, 5-8 recurrent weights, …
  svdf,               ///< inputs: ifm, feature weights, time weights, [bias], state
  other,
};

/// "conv_2d" …: the enumerator's own name.
std::string_view name_of(OpKind kind) noexcept;

/// The inputs of an operator that are weight matrices, in TFLite's order.
std::vector<std::size_t> weight_inputs(OpKind kind);

enum class Padding : std::uint8_t { same, valid, explicit_ };
enum class Activation : std::uint8_t { none, relu, relu6, relu_n1_to_1, tanh, sign_bit, sigmoid };

/// What a convolution-like operator, a fully connected one included, says besides its tensors. As the file says it:
/// a stride may be 0 or negative.
struct ConvAttributes {
  int stride_d = 1, stride_h = 1, stride_w = 1;        ///< d: conv_3d only
  int dilation_d = 1, dilation_h = 1, dilation_w = 1;  ///< d: conv_3d only
  int depth_multiplier = 1;       ///< depthwise only
  bool shuffled_weights = false;  ///< fully connected only: TFLite's SHUFFLED4x16INT8 order
  Padding padding = Padding::valid;
  Activation activation = Activation::none;
};

/// What an LSTM or SVDF says besides its tensors and its activation (`ConvAttributes::activation`).
struct RecurrentAttributes {
  float cell_clip = 0, proj_clip = 0;  ///< 0: no clipping
  bool time_major = false;
  bool basic_kernel = false;  ///< lstm: the five-input form with one weight matrix
  int rank = 0;               ///< svdf
};

/// One operator. Tensor numbers index the subgraph's `tensors`; -1 stands for an optional input that is absent.
struct Node {
  OpKind kind = OpKind::other;
  std::string op_name;  ///< the format's own word, e.g. "CONV_2D", or a custom operator's name
  bool custom = false;  ///< `op_name` is a custom operator's
  int version = 1;      ///< of the operator
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::vector<int> intermediates;  ///< TFLite's LSTM: tensors that carry only quantization
  ConvAttributes conv;
  RecurrentAttributes recurrent;
  std::span<const std::uint8_t> custom_options;  ///< view of the file
};

struct Subgraph {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
  std::vector<int> inputs;
  std::vector<int> outputs;
};

/// Named bytes that a file carries along.
struct Metadata {
  std::string name;
  std::span<const std::uint8_t> data;  ///< view of the file
};

/// A named entry into a subgraph: names for its inputs and outputs.
struct Signature {
  struct Argument {
    std::string name;
    int tensor = 0;  ///< index in the subgraph's `tensors`
  };
  std::string key;
  int subgraph = 0;
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
};

enum class Format : std::uint8_t { tflite, onnx, openvino };

/// A model as a graph of look-ups. Weights stay views of the mapped file that `file` keeps alive.
struct Model {
  Format format = Format::tflite;
  std::filesystem::path path;
  std::string description;
  std::vector<Subgraph> subgraphs;  ///< the first is the main one
  std::vector<Metadata> metadata;
  std::vector<Signature> signatures;
  std::shared_ptr<const MappedFile> file;
};

}  // namespace weightmill
