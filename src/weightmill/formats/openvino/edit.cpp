#include <sstream>
#include <string>

#include <fmt/format.h>

#include "document.h"
#include "layer_maker.h"

namespace weightmill {
namespace {

/// Takes the edges into `layer` out.
void remove_edges_into(IrGraphNodes& nodes, std::size_t layer) {
  for (const std::size_t e : nodes.edges_in[layer]) {
    if (nodes.edge[e].dead) continue;
    nodes.edges.remove_child(nodes.edge[e].node);
    nodes.edge[e].dead = true;
  }
}

void set_output_port(IrGraphNodes& nodes, std::size_t layer, int id) {
  set_attribute(nodes.layer[layer].child("output").child("port"), "id", std::to_string(id));
  for (const std::size_t e : nodes.edges_out[layer]) {
    if (!nodes.edge[e].dead) set_attribute(nodes.edge[e].node, "from-port", std::to_string(id));
  }
}

/// Empties <data>, or makes one in front of all else.
pugi::xml_node fresh_data(pugi::xml_node layer) {
  layer.remove_child("data");
  return layer.prepend_child("data");
}

/// The shape that the port's <dim>s say.
Shape port_shape(pugi::xml_node port) {
  Shape shape;
  for (const pugi::xml_node dim : port.children("dim")) shape.push_back(dim.text().as_llong());
  return shape;
}

/// Turns the FakeQuantize into Multiply(0, 1) -> 2.
void become_multiply(IrGraphNodes& nodes, std::size_t layer, const IrDequantization& parts) {
  pugi::xml_node node = nodes.layer[layer];
  const IrType& type = ir_type(parts.float_type);
  set_attribute(node, "type", "Multiply");
  set_attribute(node, "version", "opset1");
  if (!parts.multiply_name.empty()) set_attribute(node, "name", parts.multiply_name);
  set_attribute(fresh_data(node), "auto_broadcast", "numpy");
  pugi::xml_node input = node.child("input");
  while (const auto port = input.child("port")) input.remove_child(port);
  add_port(input, 0, type, parts.zero_point ? port_shape(node.child("output").child("port")) : parts.codes_shape);
  add_port(input, 1, type, parts.affine_shape);
  set_output_port(nodes, layer, 2);
}

}  // namespace

void Ir::set_payload(std::size_t g, std::size_t layer, const IrPayload& payload) {
  pugi::xml_node data = document_->nodes.at(g).layer.at(layer).child("data");
  set_attribute(data, "offset", std::to_string(payload.offset));
  set_attribute(data, "size", std::to_string(payload.size));
}

void Ir::dequantize(std::size_t g, std::size_t fake_quantize, const IrDequantization& parts) {
  IrGraphNodes& nodes = document_->nodes.at(g);
  pugi::xml_node multiply = nodes.layer.at(fake_quantize);
  const IrType& code_type = ir_type(parts.code_type);
  const IrType& float_type = ir_type(parts.float_type);
  LayerMaker layers(nodes, multiply, multiply.child("rt_info"));
  const auto last_in = nodes.edge[nodes.edges_in[fake_quantize].back()].node;
  const pugi::xml_node after = last_in.next_sibling("edge");
  EdgeMaker edges(nodes, nodes.edges.child("edge") && after ? after : pugi::xml_node());
  const auto codes = layers.add_constant(parts.codes_name, code_type, parts.codes_shape, parts.codes);
  pugi::xml_node value = layers.add_convert(parts.convert_name, code_type, float_type, parts.codes_shape);
  int value_port = 1;
  edges.add(codes, 0, value, 0);
  if (parts.zero_point) {
    const auto zero = layers.add_constant(parts.zero_point_name, float_type, parts.affine_shape, *parts.zero_point);
    const auto subtract = layers.add_binary(parts.subtract_name, "Subtract", float_type, parts.codes_shape,
                                            parts.affine_shape, port_shape(multiply.child("output").child("port")));
    edges.add(value, value_port, subtract, 0);
    edges.add(zero, 0, subtract, 1);
    value = subtract;
    value_port = 2;
  }
  const auto scale = layers.add_constant(parts.scale_name, float_type, parts.affine_shape, parts.scale);
  edges.add(value, value_port, multiply, 0);
  edges.add(scale, 0, multiply, 1);
  remove_edges_into(nodes, fake_quantize);
  become_multiply(nodes, fake_quantize, parts);
}

void Ir::make_constant(std::size_t g, std::size_t layer, DType dtype, const Shape& shape, const IrPayload& payload) {
  IrGraphNodes& nodes = document_->nodes.at(g);
  pugi::xml_node node = nodes.layer.at(layer);
  const IrType& type = ir_type(dtype);
  set_attribute(node, "type", "Const");
  set_attribute(node, "version", "opset1");
  pugi::xml_node data = fresh_data(node);
  set_attribute(data, "element_type", std::string(type.name));
  set_attribute(data, "shape", shape_text(shape));
  set_attribute(data, "offset", std::to_string(payload.offset));
  set_attribute(data, "size", std::to_string(payload.size));
  node.remove_child("input");
  set_attribute(node.child("output").child("port"), "precision", std::string(type.precision));
  remove_edges_into(nodes, layer);
  set_output_port(nodes, layer, 0);
}

void Ir::bypass(std::size_t g, std::size_t layer, std::size_t source) {
  IrGraphNodes& nodes = document_->nodes.at(g);
  const pugi::xml_node from = nodes.layer.at(source);
  const std::string port = from.child("output").child("port").attribute("id").value();
  for (const std::size_t e : nodes.edges_out.at(layer)) {
    if (nodes.edge[e].dead) continue;
    set_attribute(nodes.edge[e].node, "from-layer", id_of(from));
    set_attribute(nodes.edge[e].node, "from-port", port);
    nodes.edges_out[source].push_back(e);
  }
  nodes.edges_out[layer].clear();
}

void Ir::remove(std::size_t g, std::size_t layer) {
  IrGraphNodes& nodes = document_->nodes.at(g);
  remove_edges_into(nodes, layer);
  nodes.layers.remove_child(nodes.layer.at(layer));
}

std::string Ir::xml() const {
  const bool declared = document_->xml.first_child().type() == pugi::node_declaration;
  const unsigned flags = pugi::format_indent | (declared ? 0u : pugi::format_no_declaration);
  std::ostringstream out;
  document_->xml.save(out, "\t", flags, pugi::encoding_utf8);
  return std::move(out).str();
}

}  // namespace weightmill
