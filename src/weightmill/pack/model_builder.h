#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <testkit/random.h>
#include <weightmill/model/graph.h>

namespace weightmill::pack_testing {

/// Small models for tests: one subgraph, tensors with names, constants owned.
class ModelBuilder {
 public:
  ModelBuilder() { model_.subgraphs.emplace_back(); }

  int tensor(std::string name, DType dtype, Shape shape, std::vector<float> scale = {0.05f},
             std::vector<std::int64_t> zero_point = {0}, int axis = 0) {
    Tensor t;
    t.name = std::move(name);
    t.dtype = dtype;
    t.shape = std::move(shape);
    t.quantization.scale = std::move(scale);
    t.quantization.zero_point = std::move(zero_point);
    t.quantization.axis = axis;
    graph().tensors.push_back(std::move(t));
    return static_cast<int>(graph().tensors.size()) - 1;
  }

  /// Makes tensor `number` a constant with `bytes`.
  int fill(int number, std::vector<std::uint8_t> bytes) {
    Tensor& t = at(number);
    t.owned = std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes));
    t.data = *t.owned;
    t.constant = true;
    return number;
  }

  /// The same with random bytes.
  int fill_randomly(int number, std::uint64_t seed) {
    testkit::Random random(seed);
    const Tensor& t = at(number);
    std::vector<std::uint8_t> bytes(size_bytes(t.shape, t.dtype, t.name));
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.bits());
    return fill(number, std::move(bytes));
  }

  int bias(int n_channels, std::int32_t first = 100) {
    std::vector<std::uint8_t> bytes;
    for (std::int32_t c = 0; c < n_channels; ++c) {
      for (int shift = 0; shift < 32; shift += 8)
        bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint32_t>(first + c) >> shift));
    }
    return fill(tensor("bias", DType::i32, {n_channels}), std::move(bytes));
  }

  Node& node(OpKind kind, std::string op_name, std::vector<int> inputs, std::vector<int> outputs) {
    Node n;
    n.kind = kind;
    n.op_name = std::move(op_name);
    n.inputs = std::move(inputs);
    n.outputs = std::move(outputs);
    graph().nodes.push_back(std::move(n));
    return graph().nodes.back();
  }

  /// A convolution of an 8x8 feature map with random weights.
  Node& conv(int n_o, int height, int width, int n_i, std::uint64_t seed = 1, DType ifm = DType::i8,
             DType weights = DType::i8) {
    const int x = tensor("ifm", ifm, {1, 8, 8, n_i});
    const int w = fill_randomly(tensor("weights", weights, {n_o, height, width, n_i}), seed);
    const int y = tensor("ofm", ifm, {1, 8, 8, n_o});
    return node(OpKind::conv_2d, "CONV_2D", {x, w, bias(n_o)}, {y});
  }

  Tensor& at(int number) { return graph().tensors[static_cast<std::size_t>(number)]; }
  Tensor& input(std::size_t slot) { return at(graph().nodes.back().inputs[slot]); }
  Tensor& output() { return at(graph().nodes.back().outputs[0]); }
  Subgraph& graph() { return model_.subgraphs.front(); }
  const Model& model() const { return model_; }

 private:
  Model model_;
};

}  // namespace weightmill::pack_testing
