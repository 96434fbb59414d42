#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tflite_generated.h>

namespace weightmill::test_model {

/// Adds a buffer with `bytes`; returns its number.
inline std::uint32_t add_buffer(tflite::ModelT& model, std::vector<std::uint8_t> bytes) {
  model.buffers.push_back(std::make_unique<tflite::BufferT>());
  model.buffers.back()->data = std::move(bytes);
  return static_cast<std::uint32_t>(model.buffers.size() - 1);
}

/// Adds a tensor to the first subgraph; returns it.
inline tflite::TensorT& add_tensor(tflite::ModelT& model, std::string name, std::vector<std::int32_t> shape,
                                   tflite::TensorType type, std::vector<float> scales = {}, std::uint32_t buffer = 0) {
  auto tensor = std::make_unique<tflite::TensorT>();
  tensor->name = std::move(name);
  tensor->shape = std::move(shape);
  tensor->type = type;
  tensor->buffer = buffer;
  tensor->quantization = std::make_unique<tflite::QuantizationParametersT>();
  tensor->quantization->zero_point.assign(scales.size(), 0);
  tensor->quantization->scale = std::move(scales);
  auto& tensors = model.subgraphs[0]->tensors;
  tensors.push_back(std::move(tensor));
  return *tensors.back();
}

/// Adds an operator of a code of its own to the first subgraph; returns it.
inline tflite::OperatorT& add_operator(tflite::ModelT& model, tflite::BuiltinOperator code,
                                       std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs) {
  model.operator_codes.push_back(std::make_unique<tflite::OperatorCodeT>());
  model.operator_codes.back()->builtin_code = code;
  auto op = std::make_unique<tflite::OperatorT>();
  op->opcode_index = static_cast<std::uint32_t>(model.operator_codes.size() - 1);
  op->inputs = std::move(inputs);
  op->outputs = std::move(outputs);
  model.subgraphs[0]->operators.push_back(std::move(op));
  return *model.subgraphs[0]->operators.back();
}

/// An int8 convolution of 2 x 2 with 3 output and 4 input channels: tensors 0 input, 1 weights, 2 bias, 3 output.
inline tflite::ModelT conv_model() {
  using tflite::TensorType;
  tflite::ModelT model;
  model.version = 3;
  model.description = "made by a test";
  model.subgraphs.push_back(std::make_unique<tflite::SubGraphT>());
  add_buffer(model, {});
  add_tensor(model, "input", {1, 8, 8, 4}, TensorType::INT8, {0.5f});
  add_tensor(model, "weights", {3, 2, 2, 4}, TensorType::INT8, {1, 2, 3},
             add_buffer(model, std::vector<std::uint8_t>(48, 7)));
  add_tensor(model, "bias", {3}, TensorType::INT32, {0.5f, 1, 1.5f},
             add_buffer(model, std::vector<std::uint8_t>(12, 1)));
  add_tensor(model, "output", {1, 4, 4, 3}, TensorType::INT8, {0.25f});
  tflite::Conv2DOptionsT options;
  options.stride_h = 2;
  options.stride_w = 3;
  options.dilation_h_factor = 4;
  options.dilation_w_factor = 5;
  options.padding = tflite::Padding::VALID;
  options.fused_activation_function = tflite::ActivationFunctionType::RELU6;
  add_operator(model, tflite::BuiltinOperator::CONV_2D, {0, 1, 2}, {3}).builtin_options.Set(std::move(options));
  model.subgraphs[0]->inputs = {0};
  model.subgraphs[0]->outputs = {3};
  return model;
}

/// The file of `model`.
inline std::vector<std::uint8_t> to_bytes(const tflite::ModelT& model) {
  flatbuffers::FlatBufferBuilder builder;
  tflite::FinishModelBuffer(builder, tflite::Model::Pack(builder, &model));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

}  // namespace weightmill::test_model
