#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/error.h>

#include "../quote.h"
#include "document.h"

namespace weightmill {
namespace {

/// More than any real model's nesting of bodies; keeps what walks down a tree from running out of stack.
constexpr int kMaxDepth = 256;

[[noreturn]] void refuse(const std::string& where, const std::string& why) { fail(ErrorCode::bad_file, where, why); }

std::string layer_in(const std::string& xml_name, pugi::xml_node layer) {
  return fmt::format("{}: layer {} {}", xml_name, quote(layer.attribute("id").value()),
                     quote(layer.attribute("name").value()));
}

/// Port ids below <input> or <output>.
struct PortIds {
  std::vector<int> ids;  ///< in the file's order
  std::vector<std::pair<int, std::size_t>> by_id;

  /// The position of a port in the file's order; nothing where there is none with that id.
  std::optional<std::size_t> find(int id) const {
    const auto found = std::ranges::lower_bound(by_id, std::pair(id, std::size_t{0}));
    return found != by_id.end() && found->first == id ? std::optional(found->second) : std::nullopt;
  }
};

PortIds port_ids(const std::string& where, pugi::xml_node side) {
  PortIds ports;
  for (const pugi::xml_node port : side.children("port")) {
    const std::uint64_t id = parse_number(port.attribute("id").value(), where, "port id");
    if (id > 1u << 20) refuse(where, fmt::format("port id {} is too large", id));
    ports.by_id.emplace_back(static_cast<int>(id), ports.ids.size());
    ports.ids.push_back(static_cast<int>(id));
  }
  std::ranges::sort(ports.by_id);
  const auto same_id = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::ranges::adjacent_find(ports.by_id, same_id) != ports.by_id.end())
    refuse(where, "two ports have the same id");
  return ports;
}

struct Ports {
  PortIds inputs;
  PortIds outputs;
};

/// Numbers of ports that this program counts on.
void check_port_counts(const std::string& where, const IrLayer& layer) {
  struct Want {
    const char* type;
    std::size_t inputs, outputs;
  };
  for (const Want& want : {Want{"Const", 0, 1}, Want{"FakeQuantize", 5, 1}, Want{"Convert", 1, 1},
                           Want{"Subtract", 2, 1}, Want{"Multiply", 2, 1}}) {
    if (layer.type != want.type || (layer.inputs.size() == want.inputs && layer.n_outputs == want.outputs)) continue;
    refuse(where, fmt::format("{} with {} inputs and {} outputs: wanted {} and {}", want.type, layer.inputs.size(),
                              layer.n_outputs, want.inputs, want.outputs));
  }
}

class GraphReader {
 public:
  GraphReader(const std::string& xml_name, IrGraph& graph, IrGraphNodes& nodes)
      : xml_name_(xml_name), graph_(graph), nodes_(nodes) {}

  void read_layers() {
    for (const pugi::xml_node node : nodes_.layers.children("layer")) {
      const std::string where = layer_in(xml_name_, node);
      const std::uint64_t id = parse_number(node.attribute("id").value(), where, "id");
      if (id >> 62 != 0) refuse(where, "id is too large");
      if (!by_id_.emplace(id, graph_.layers.size()).second) refuse(where, "another layer has the same id");
      nodes_.next_id = std::max(nodes_.next_id, id + 1);
      Ports ports{port_ids(where, node.child("input")), port_ids(where, node.child("output"))};
      IrLayer layer;
      layer.name = node.attribute("name").value();
      layer.type = node.attribute("type").value();
      layer.inputs.resize(ports.inputs.ids.size());
      layer.n_outputs = ports.outputs.ids.size();
      check_port_counts(where, layer);
      graph_.layers.push_back(std::move(layer));
      ports_.push_back(std::move(ports));
      nodes_.layer.push_back(node);
    }
    nodes_.edges_in.resize(graph_.layers.size());
    nodes_.edges_out.resize(graph_.layers.size());
  }

  void read_edges() {
    std::vector<std::vector<bool>> fed(graph_.layers.size());
    for (std::size_t i = 0; i < fed.size(); ++i) fed[i].resize(graph_.layers[i].inputs.size());
    for (const pugi::xml_node node : nodes_.edges.children("edge")) {
      const std::size_t from = layer_of(node, "from-layer"), to = layer_of(node, "to-layer");
      const int from_port = port_of(node, "from-port"), to_port = port_of(node, "to-port");
      find_port(ports_[from].outputs, from_port, from, "output");
      const std::size_t input = find_port(ports_[to].inputs, to_port, to, "input");
      if (fed[to][input])
        refuse(layer_in(xml_name_, nodes_.layer[to]), fmt::format("two edges lead to input port {}", to_port));
      fed[to][input] = true;
      graph_.layers[to].inputs[input] = {from, from_port};
      graph_.layers[from].uses.push_back({to, input});
      nodes_.edges_in[to].push_back(nodes_.edge.size());
      nodes_.edges_out[from].push_back(nodes_.edge.size());
      nodes_.edge.push_back({from, to, input, node});
    }
    check_all_fed(fed);
  }

 private:
  std::size_t layer_of(pugi::xml_node edge, const char* key) const {
    const std::uint64_t id = parse_number(edge.attribute(key).value(), xml_name_ + ": edge", key);
    const auto found = by_id_.find(id);
    if (found == by_id_.end()) refuse(xml_name_ + ": edge", fmt::format("{} {} is no layer", key, id));
    return found->second;
  }
  int port_of(pugi::xml_node edge, const char* key) const {
    const std::uint64_t id = parse_number(edge.attribute(key).value(), xml_name_ + ": edge", key);
    return id > 1u << 20 ? -1 : static_cast<int>(id);
  }
  std::size_t find_port(const PortIds& ports, int id, std::size_t layer, const char* side) const {
    const auto found = ports.find(id);
    if (!found) {
      refuse(layer_in(xml_name_, nodes_.layer[layer]),
             fmt::format("an edge names {} port {}, which is not there", side, id));
    }
    return *found;
  }
  void check_all_fed(const std::vector<std::vector<bool>>& fed) const {
    for (std::size_t i = 0; i < fed.size(); ++i) {
      const auto missing = std::ranges::find(fed[i], false);
      if (missing == fed[i].end()) continue;
      const auto input = static_cast<std::size_t>(missing - fed[i].begin());
      refuse(layer_in(xml_name_, nodes_.layer[i]),
             fmt::format("no edge leads to input port {}", ports_[i].inputs.ids[input]));
    }
  }

  const std::string& xml_name_;
  IrGraph& graph_;
  IrGraphNodes& nodes_;
  std::unordered_map<std::uint64_t, std::size_t> by_id_;
  std::vector<Ports> ports_;
};

/// All elements that hold a graph, the model's first. Throws: bad_file if the XML is nested too deeply.
std::vector<pugi::xml_node> find_graphs(pugi::xml_node root, const std::string& xml_name) {
  std::vector<pugi::xml_node> found;
  int depth = 0;
  for (pugi::xml_node at = root; at;) {
    if (at.child("layers")) found.push_back(at);
    if (const auto child = at.first_child()) {
      if (++depth > kMaxDepth) refuse(xml_name, fmt::format("elements are nested more than {} deep", kMaxDepth));
      at = child;
      continue;
    }
    while (at != root && !at.next_sibling()) {
      at = at.parent();
      --depth;
    }
    if (at == root) break;
    at = at.next_sibling();
  }
  return found;
}

/// Operators whose result changes from run to run, whatever they read: state and random numbers.
bool varies(const std::string& type) { return type == "ReadValue" || type == "RandomUniform" || type == "Multinomial"; }

void check_version(pugi::xml_node net, const std::string& xml_name) {
  const std::string version = net.attribute("version").value();
  if (version == "10" || version == "11") return;
  fail(ErrorCode::unsupported, xml_name, fmt::format("IR version {}: wanted 10 or 11", quote(version)));
}

}  // namespace

std::uint64_t parse_number(const char* text, const std::string& where, const char* what) {
  std::uint64_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, value);
  if (text == end) refuse(where, fmt::format("{} is missing", what));
  if (error != std::errc() || rest != end)
    refuse(where, fmt::format("{} is {}: wanted a whole number", what, quote(text)));
  return value;
}

void read_graph(pugi::xml_node parent, const std::string& xml_name, IrGraph& graph, IrGraphNodes& nodes) {
  nodes.layers = parent.child("layers");
  nodes.edges = parent.child("edges");
  GraphReader reader(xml_name, graph, nodes);
  reader.read_layers();
  reader.read_edges();
}

void order_layers(const std::string& xml_name, IrGraph& graph) {
  std::vector<std::size_t> n_waiting(graph.layers.size());
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    n_waiting[i] = graph.layers[i].inputs.size();
    if (n_waiting[i] == 0) ready.push_back(i);
    graph.layers[i].constant = graph.layers[i].type == "Const" || (n_waiting[i] != 0 && !varies(graph.layers[i].type));
  }
  std::size_t n_done = 0;
  for (; n_done < ready.size(); ++n_done) {
    const IrLayer& layer = graph.layers[ready[n_done]];
    for (const IrUse& use : layer.uses) {
      if (!layer.constant) graph.layers[use.layer].constant = false;
      if (--n_waiting[use.layer] == 0) ready.push_back(use.layer);
    }
  }
  if (n_done == graph.layers.size()) return;
  const auto stuck =
      static_cast<std::size_t>(std::ranges::find_if(n_waiting, [](auto n) { return n != 0; }) - n_waiting.begin());
  refuse(xml_name, fmt::format("layer {} is part of a cycle, or behind one", quote(graph.layers[stuck].name)));
}

Ir::Ir(std::span<const std::uint8_t> xml, std::string_view xml_name, std::span<const std::uint8_t> bin,
       std::string_view bin_name)
    : document_(std::make_unique<Document>()) {
  Document& document = *document_;
  document.xml_name = xml_name;
  document.bin_name = bin_name;
  document.bin = bin;
  const unsigned flags = pugi::parse_full;
  const auto parsed = document.xml.load_buffer(xml.data(), xml.size(), flags, pugi::encoding_utf8);
  if (!parsed) refuse(document.xml_name, fmt::format("broken XML at byte {}: {}", parsed.offset, parsed.description()));
  const pugi::xml_node net = document.xml.child("net");
  if (!net) refuse(document.xml_name, "has no <net> element: not an OpenVINO IR");
  check_version(net, document.xml_name);
  if (!net.child("layers")) refuse(document.xml_name, "<net> has no <layers>");
  for (const pugi::xml_node parent : find_graphs(net, document.xml_name)) {
    document.graphs.emplace_back();
    document.nodes.emplace_back();
    read_graph(parent, document.xml_name, document.graphs.back(), document.nodes.back());
    order_layers(document.xml_name, document.graphs.back());
    read_payloads(document.xml_name, document.bin_name, bin.size(), document.nodes.back(), document.graphs.back());
  }
}

Ir::~Ir() = default;
Ir::Ir(Ir&&) noexcept = default;

std::size_t Ir::n_graphs() const noexcept { return document_->graphs.size(); }
const IrGraph& Ir::graph(std::size_t g) const { return document_->graphs.at(g); }

std::optional<std::string> Ir::attribute(std::size_t g, std::size_t layer, const char* key) const {
  const pugi::xml_attribute found = document_->nodes.at(g).layer.at(layer).child("data").attribute(key);
  return found ? std::optional<std::string>(found.value()) : std::nullopt;
}

bool is_ir(std::span<const std::uint8_t> file) noexcept {
  std::string_view text(reinterpret_cast<const char*>(file.data()), std::min<std::size_t>(file.size(), 4096));
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte-order mark
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '<') return false;
  const auto net = text.find("<net");
  return net != std::string_view::npos && net + 4 < text.size() && std::strchr(" \t\r\n>/", text[net + 4]) != nullptr;
}

}  // namespace weightmill
