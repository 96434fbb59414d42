#pragma once

#include <string>
#include <vector>

#include <pugixml.hpp>

#include "../openvino.h"

namespace weightmill {

/// An edge of the XML. `dead`: taken out by an edit.
struct IrEdge {
  std::size_t from = 0, to = 0;  ///< layers
  std::size_t input = 0;         ///< which of the inputs of `to`, from 0
  pugi::xml_node node;
  bool dead = false;
};

/// The XML behind an IrGraph.
struct IrGraphNodes {
  pugi::xml_node layers;
  pugi::xml_node edges;
  std::vector<pugi::xml_node> layer;               ///< as IrGraph::layers
  std::vector<IrEdge> edge;
  std::vector<std::vector<std::size_t>> edges_in;   ///< of each layer
  std::vector<std::vector<std::size_t>> edges_out;
  std::uint64_t next_id = 0;
};

struct Ir::Document {
  std::string xml_name;
  std::string bin_name;
  std::span<const std::uint8_t> bin;
  pugi::xml_document xml;
  std::vector<IrGraph> graphs;
  std::vector<IrGraphNodes> nodes;  ///< as `graphs`
};

/// Fills graph and nodes from the <layers> and <edges> below `parent`.
void read_graph(pugi::xml_node parent, const std::string& xml_name, IrGraph& graph, IrGraphNodes& nodes);

/// Sets `constant` of each layer. Throws: bad_file if there is a cycle (names a layer on it).
void order_layers(const std::string& xml_name, IrGraph& graph);

/// Gives each Const its payload. Throws: bad_file if one is missing, too small or outside the .bin.
void read_payloads(const std::string& xml_name, const std::string& bin_name, std::uint64_t bin_size,
                   const IrGraphNodes& nodes, IrGraph& graph);

/// The `shape` of a Const's <data>: "3, 4", or "" for a scalar. Throws: bad_file.
Shape parse_shape(const char* text, const std::string& where);
/// A whole number. Throws: bad_file (names `where` and `what`).
std::uint64_t parse_number(const char* text, const std::string& where, const char* what);

}  // namespace weightmill
