#include "graph_edit.h"
#include "onnx_model.h"
#include "tensor_types.h"

namespace weightmill {
namespace {

using namespace onnx_file;

constexpr const char* kMicrosoft = "com.microsoft";

AttributeProto int_attribute_of(const char* name, std::int64_t value) {
  AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(AttributeProto::INT);
  attribute.set_i(value);
  return attribute;
}

TensorProto tensor_of(const std::string& name, TensorProto::DataType type, const Shape& shape) {
  TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const std::int64_t extent : shape) tensor.add_dims(extent);
  return tensor;
}

/// Scales may be many: they are not copied.
Payload scale_payload(const std::shared_ptr<const std::vector<float>>& scale) {
  Payload payload;
  payload.size_bytes = scale->size() * sizeof(float);
  payload.produce = [scale](const Payload::Sink& sink) {
    sink({reinterpret_cast<const std::uint8_t*>(scale->data()), scale->size() * sizeof(float)});
  };
  return payload;
}

/// Puts codes in the place of float weights.
class WeightEdit {
 public:
  WeightEdit(ModelProto& model, GraphIndex& index, PayloadTable& payloads)
      : model_(model), index_(index), payloads_(payloads), edit_(model, index) {}

  void replace(const OnnxDequantization& weight) {
    int home = edit_.node_of(weight.readers.front().node).scope;
    for (const OnnxInput& reader : weight.readers) home = index_.common_scope(home, edit_.node_of(reader.node).scope);
    const std::string read = add_float_type(home, weight, add_dequantize(home, weight));
    for (const OnnxInput& reader : weight.readers) edit_.redirect_input(edit_.node_of(reader.node), reader.input, read);
  }

  void apply() { edit_.apply(); }
  std::size_t n_removed_passes() const { return edit_.n_removed_passes(); }

 private:
  std::string add_constant(int home, TensorProto tensor, Payload payload) {
    tensor.set_raw_data(payloads_.add(std::move(payload)));
    std::string name = tensor.name();
    edit_.add_constant(home, std::move(tensor));
    return name;
  }

  std::string add_codes(int home, const OnnxDequantization& weight) {
    Payload payload;
    payload.size_bytes = size_bytes(weight.shape, weight.code_type, weight.name);
    payload.produce = weight.codes;
    const std::string name = edit_.new_name(weight.name + "_quantized");
    return add_constant(home, tensor_of(name, data_type_of(weight.code_type), weight.shape), std::move(payload));
  }

  /// Adds the codes, their parameters and the node that dequantizes them; returns its output's name.
  std::string add_dequantize(int home, const OnnxDequantization& weight) {
    NodeProto node;
    node.set_op_type("DequantizeLinear");
    node.add_input(add_codes(home, weight));
    const std::string scale = edit_.new_name(weight.name + "_scale");
    node.add_input(
        add_constant(home, tensor_of(scale, TensorProto::FLOAT, weight.scale_shape), scale_payload(weight.scale)));
    if (!weight.zero_point.empty()) {
      const std::string zero_point = edit_.new_name(weight.name + "_zero_point");
      node.add_input(add_constant(home, tensor_of(zero_point, data_type_of(weight.code_type), weight.scale_shape),
                                  owned_payload(weight.zero_point)));
    }
    const std::string output = edit_.new_name(weight.name + "_dequantized");
    node.add_output(output);
    node.set_name(output);
    const bool per_axis = !weight.scale_shape.empty();
    if (per_axis) *node.add_attribute() = int_attribute_of("axis", weight.axis);
    if (weight.block_size > 0) *node.add_attribute() = int_attribute_of("block_size", weight.block_size);
    if (opset_of(model_, index_, home) < dequantize_opset(weight.code_type, per_axis, weight.block_size > 0)) {
      node.set_domain(kMicrosoft);
      edit_.import_domain(home, kMicrosoft, 1);
    }
    edit_.add_node(home, std::move(node));
    return output;
  }

  /// Scales are float32 whatever the operator reads: ONNX Runtime 1.32 has a defect with float16 ones.
  std::string add_float_type(int home, const OnnxDequantization& weight, const std::string& dequantized) {
    if (weight.float_type == DType::f32) return dequantized;
    NodeProto node;
    node.set_op_type("Cast");
    node.add_input(dequantized);
    const std::string output = edit_.new_name(dequantized + "_cast");
    node.add_output(output);
    node.set_name(output);
    *node.add_attribute() =
        int_attribute_of("to", weight.float_type == DType::f16 ? TensorProto::FLOAT16 : TensorProto::BFLOAT16);
    edit_.add_node(home, std::move(node));
    return output;
  }

  ModelProto& model_;
  GraphIndex& index_;
  PayloadTable& payloads_;
  GraphEdit edit_;
};

}  // namespace

std::int64_t dequantize_opset(DType code_type, bool per_axis, bool blocks) noexcept {
  if (blocks || size_bits(code_type) < 8) return 21;
  return per_axis ? 13 : 10;
}

std::size_t OnnxModel::dequantize_weights(const std::vector<OnnxDequantization>& weights) {
  GraphIndex index = impl_->index();
  WeightEdit edit(impl_->proto, index, impl_->payloads);
  for (const OnnxDequantization& weight : weights) edit.replace(weight);
  edit.apply();
  return edit.n_removed_passes();
}

}  // namespace weightmill
