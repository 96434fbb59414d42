#include "layer_maker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weightmill {

void set_attribute(pugi::xml_node node, const char* key, const std::string& value) {
  pugi::xml_attribute attribute = node.attribute(key);
  if (!attribute) attribute = node.append_attribute(key);
  attribute.set_value(value.c_str());
}

std::string shape_text(const Shape& shape) { return fmt::format("{}", fmt::join(shape, ", ")); }

void add_port(pugi::xml_node side, int id, const IrType& type, const Shape& shape) {
  pugi::xml_node port = side.append_child("port");
  set_attribute(port, "id", std::to_string(id));
  set_attribute(port, "precision", std::string(type.precision));
  for (const std::int64_t extent : shape) port.append_child("dim").text().set(std::to_string(extent).c_str());
}

const char* id_of(pugi::xml_node layer) { return layer.attribute("id").value(); }

pugi::xml_node LayerMaker::add(const std::string& name, const char* type) {
  pugi::xml_node layer = nodes_.layers.insert_child_before("layer", before_);
  set_attribute(layer, "id", std::to_string(nodes_.next_id++));
  set_attribute(layer, "name", name);
  set_attribute(layer, "type", type);
  set_attribute(layer, "version", "opset1");
  layer.append_child("data");
  if (rt_info_) layer.append_copy(rt_info_);
  return layer;
}

pugi::xml_node LayerMaker::add_constant(const std::string& name, const IrType& type, const Shape& shape,
                                        const IrPayload& payload) {
  pugi::xml_node layer = add(name, "Const");
  pugi::xml_node data = layer.child("data");
  set_attribute(data, "element_type", std::string(type.name));
  set_attribute(data, "shape", shape_text(shape));
  set_attribute(data, "offset", std::to_string(payload.offset));
  set_attribute(data, "size", std::to_string(payload.size));
  add_port(layer.append_child("output"), 0, type, shape);
  return layer;
}

pugi::xml_node LayerMaker::add_convert(const std::string& name, const IrType& from, const IrType& to,
                                       const Shape& shape) {
  pugi::xml_node layer = add(name, "Convert");
  set_attribute(layer.child("data"), "destination_type", std::string(to.name));
  add_port(layer.append_child("input"), 0, from, shape);
  add_port(layer.append_child("output"), 1, to, shape);
  return layer;
}

pugi::xml_node LayerMaker::add_binary(const std::string& name, const char* type, const IrType& element,
                                      const Shape& left, const Shape& right, const Shape& result) {
  pugi::xml_node layer = add(name, type);
  set_attribute(layer.child("data"), "auto_broadcast", "numpy");
  pugi::xml_node input = layer.append_child("input");
  add_port(input, 0, element, left);
  add_port(input, 1, element, right);
  add_port(layer.append_child("output"), 2, element, result);
  return layer;
}

pugi::xml_node LayerMaker::add_reshape(const std::string& name, const IrType& type, const Shape& from,
                                       const Shape& to) {
  pugi::xml_node layer = add(name, "Reshape");
  set_attribute(layer.child("data"), "special_zero", "false");
  pugi::xml_node input = layer.append_child("input");
  add_port(input, 0, type, from);
  add_port(input, 1, ir_type(DType::i64), {static_cast<std::int64_t>(to.size())});
  add_port(layer.append_child("output"), 2, type, to);
  return layer;
}

void EdgeMaker::add(pugi::xml_node from, int from_port, pugi::xml_node to, int to_port) {
  pugi::xml_node edge = before_ ? nodes_.edges.insert_child_before("edge", before_) : nodes_.edges.append_child("edge");
  set_attribute(edge, "from-layer", id_of(from));
  set_attribute(edge, "from-port", std::to_string(from_port));
  set_attribute(edge, "to-layer", id_of(to));
  set_attribute(edge, "to-port", std::to_string(to_port));
}

}  // namespace weightmill
