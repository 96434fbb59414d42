#include <algorithm>
#include <string>

#include "document.h"
#include "layer_maker.h"

namespace weightmill {
namespace {

/// A layer's output.
struct Output {
  pugi::xml_node layer;
  int port = 0;
};

/// The layers that turn codes into weights.
class DequantizationMaker {
 public:
  DequantizationMaker(IrGraphNodes& nodes, const IrQuantizedWeight& parts)
      : parts_(parts),
        layers_(nodes, nodes.layer.at(parts.before), pugi::xml_node()),
        edges_(nodes, pugi::xml_node()) {}

  Output make() {
    Output value = widened("codes", parts_.codes_shape, parts_.codes);
    if (parts_.zero_point)
      value = combined("minus_zero_point", "Subtract", value,
                       widened("zero_point", parts_.scale_shape, *parts_.zero_point));
    const auto scale = layers_.add_constant(name("scale"), float_, parts_.scale_shape, parts_.scale);
    value = combined("times_scale", "Multiply", value, {scale, 0});
    if (parts_.target_shape) value = reshaped(value);
    return parts_.float_type == DType::f32 ? value : narrowed(value);
  }

 private:
  std::string name(const char* part) const { return parts_.name + "/" + part; }

  /// Integers as float32.
  Output widened(const char* part, const Shape& shape, const IrPayload& payload) {
    const IrType& type = ir_type(parts_.code_type);
    const auto constant = layers_.add_constant(name(part), type, shape, payload);
    const auto convert = layers_.add_convert(name(part) + "/to_float", type, float_, shape);
    edges_.add(constant, 0, convert, 0);
    return {convert, 1};
  }

  Output combined(const char* part, const char* type, const Output& left, const Output& right) {
    const auto layer =
        layers_.add_binary(name(part), type, float_, parts_.codes_shape, parts_.scale_shape, parts_.codes_shape);
    edges_.add(left.layer, left.port, layer, 0);
    edges_.add(right.layer, right.port, layer, 1);
    return {layer, 2};
  }

  Output reshaped(const Output& value) {
    const Shape rank{static_cast<std::int64_t>(parts_.shape.size())};
    const auto target = layers_.add_constant(name("shape"), ir_type(DType::i64), rank, *parts_.target_shape);
    const auto layer = layers_.add_reshape(name("without_blocks"), float_, parts_.codes_shape, parts_.shape);
    edges_.add(value.layer, value.port, layer, 0);
    edges_.add(target, 0, layer, 1);
    return {layer, 2};
  }

  Output narrowed(const Output& value) {
    const auto layer = layers_.add_convert(name("as_read"), float_, ir_type(parts_.float_type), parts_.shape);
    edges_.add(value.layer, value.port, layer, 0);
    return {layer, 1};
  }

  const IrQuantizedWeight& parts_;
  const IrType& float_ = ir_type(DType::f32);
  LayerMaker layers_;
  EdgeMaker edges_;
};

}  // namespace

void Ir::dequantize_weight(std::size_t g, const IrQuantizedWeight& parts) {
  IrGraphNodes& nodes = document_->nodes.at(g);
  const Output weights = DequantizationMaker(nodes, parts).make();
  for (const IrUse& reader : parts.readers) {
    const auto& into = nodes.edges_in.at(reader.layer);
    const auto edge = std::ranges::find_if(into, [&](std::size_t e) { return nodes.edge[e].input == reader.input; });
    set_attribute(nodes.edge[*edge].node, "from-layer", id_of(weights.layer));
    set_attribute(nodes.edge[*edge].node, "from-port", std::to_string(weights.port));
  }
}

}  // namespace weightmill
