#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include <weightmill/base/error.h>

#include "../quote.h"
#include "document.h"

namespace weightmill {
namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& why) { fail(ErrorCode::bad_file, where, why); }

std::string where_of(const std::string& xml_name, pugi::xml_node layer) {
  return fmt::format("{}: Const {}", xml_name, quote(layer.attribute("name").value()));
}

/// The size that type and shape ask for; 0 where that cannot be said.
std::uint64_t wanted_size(const std::string& where, pugi::xml_node data) {
  const IrType* type = ir_type(data.attribute("element_type").value());
  if (type == nullptr || type->group_bytes == 0 || !data.attribute("shape")) return 0;
  const Shape shape = parse_shape(data.attribute("shape").value(), where);
  return ir_size_bytes(*type, n_elements(shape, where), where);
}

IrPayload read_payload(const std::string& xml_name, const std::string& bin_name, std::uint64_t bin_size,
                       pugi::xml_node layer) {
  const std::string where = where_of(xml_name, layer);
  const pugi::xml_node data = layer.child("data");
  const IrPayload payload{parse_number(data.attribute("offset").value(), where, "offset"),
                          parse_number(data.attribute("size").value(), where, "size")};
  if (payload.offset > bin_size || payload.size > bin_size - payload.offset) {
    refuse(where,
           fmt::format("needs {} bytes at offset {}, but {} has {}", payload.size, payload.offset, bin_name, bin_size));
  }
  const std::uint64_t wanted = wanted_size(where, data);
  if (payload.size < wanted) refuse(where, fmt::format("has {} bytes: its shape wants {}", payload.size, wanted));
  return payload;
}

}  // namespace

Shape parse_shape(const char* text, const std::string& where) {
  constexpr std::size_t kMaxAxes = 64;  // far more than any operator takes; each reader of a constant keeps its shape
  Shape shape;
  const char* at = text;
  const char* end = text + std::strlen(text);
  const auto skip_blanks = [&] {
    while (at != end && *at == ' ') ++at;
  };
  skip_blanks();
  while (at != end) {
    std::int64_t extent = -1;
    const auto [rest, error] = std::from_chars(at, end, extent);
    if (error != std::errc() || extent < 0) refuse(where, fmt::format("shape is {}: wanted extents >= 0", quote(text)));
    if (shape.size() == kMaxAxes) refuse(where, fmt::format("shape has more than {} extents", kMaxAxes));
    shape.push_back(extent);
    at = rest;
    skip_blanks();
    if (at == end) break;
    if (*at++ != ',') refuse(where, fmt::format("shape is {}: wanted commas between extents", quote(text)));
    skip_blanks();
    if (at == end) refuse(where, fmt::format("shape is {}: ends in a comma", quote(text)));
  }
  return shape;
}

void read_payloads(const std::string& xml_name, const std::string& bin_name, std::uint64_t bin_size,
                   const IrGraphNodes& nodes, IrGraph& graph) {
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    if (graph.layers[i].type == "Const")
      graph.layers[i].payload = read_payload(xml_name, bin_name, bin_size, nodes.layer[i]);
  }
}

IrConstant Ir::constant(std::size_t g, std::size_t layer) const {
  const pugi::xml_node node = document_->nodes.at(g).layer.at(layer);
  const pugi::xml_node data = node.child("data");
  const IrPayload payload = document_->graphs.at(g).layers.at(layer).payload.value();
  IrConstant constant;
  constant.bytes = document_->bin.subspan(payload.offset, payload.size);
  const IrType* type = ir_type(data.attribute("element_type").value());
  if (type == nullptr || type->group_bytes == 0 || !data.attribute("shape")) return constant;
  const std::string where = where_of(document_->xml_name, node);
  constant.type = type;
  constant.shape = parse_shape(data.attribute("shape").value(), where);
  constant.n_elements = n_elements(constant.shape, where);
  constant.bytes = constant.bytes.first(ir_size_bytes(*type, constant.n_elements, where));
  return constant;
}

}  // namespace weightmill
