#pragma once

#include <string>

#include "document.h"

namespace weightmill {

void set_attribute(pugi::xml_node node, const char* key, const std::string& value);

/// "3, 4"
std::string shape_text(const Shape& shape);

/// <port id="…" precision="…"><dim>…</dim>…</port>
void add_port(pugi::xml_node side, int id, const IrType& type, const Shape& shape);

/// The id of a layer.
const char* id_of(pugi::xml_node layer);

/// Adds layers in front of one. Ports are numbered as OpenVINO does: inputs from 0, then the output.
class LayerMaker {
 public:
  /// `rt_info`: what each layer gets a copy of; may be empty.
  LayerMaker(IrGraphNodes& nodes, pugi::xml_node before, pugi::xml_node rt_info)
      : nodes_(nodes), before_(before), rt_info_(rt_info) {}

  pugi::xml_node add(const std::string& name, const char* type);
  pugi::xml_node add_constant(const std::string& name, const IrType& type, const Shape& shape,
                              const IrPayload& payload);
  pugi::xml_node add_convert(const std::string& name, const IrType& from, const IrType& to, const Shape& shape);
  /// Subtract or Multiply.
  pugi::xml_node add_binary(const std::string& name, const char* type, const IrType& element, const Shape& left,
                            const Shape& right, const Shape& result);
  pugi::xml_node add_reshape(const std::string& name, const IrType& type, const Shape& from, const Shape& to);

 private:
  IrGraphNodes& nodes_;
  pugi::xml_node before_;
  pugi::xml_node rt_info_;
};

/// Adds edges in front of `before`, or at the end.
class EdgeMaker {
 public:
  EdgeMaker(IrGraphNodes& nodes, pugi::xml_node before) : nodes_(nodes), before_(before) {}
  void add(pugi::xml_node from, int from_port, pugi::xml_node to, int to_port);

 private:
  IrGraphNodes& nodes_;
  pugi::xml_node before_;
};

}  // namespace weightmill
