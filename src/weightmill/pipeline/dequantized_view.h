#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <weightmill/fold/numbers.h>
#include <weightmill/formats/openvino.h>

namespace weightmill::testkit {

/// Float numbers of a Const, with their shape.
struct FloatConstant {
  Shape shape;
  std::vector<float> values;
};

/// Const(codes) -> Convert -> [Subtract] -> Multiply, as read back from an IR.
struct DequantizedView {
  std::string type;
  Shape shape;
  std::vector<int> codes;
  FloatConstant scale;
  std::optional<FloatConstant> zero_point;
  std::string codes_name;

  /// (code - zero_point) * scale; only where scale and zero point have one value.
  double scalar_value(std::size_t i) const {
    return (codes[i] - (zero_point ? zero_point->values[0] : 0.0)) * scale.values[0];
  }
};

/// An IR file pair, read whole.
class IrFile {
 public:
  explicit IrFile(const std::filesystem::path& xml)
      : xml_(read_all(xml)), bin_(read_all(std::filesystem::path(xml).replace_extension(".bin"))),
        ir_(xml_, xml.string(), bin_, "the .bin") {}

  const Ir& ir() const { return ir_; }
  const std::vector<std::uint8_t>& xml() const { return xml_; }
  const std::vector<std::uint8_t>& bin() const { return bin_; }

  std::size_t count(const std::string& type) const {
    std::size_t n = 0;
    for (std::size_t g = 0; g < ir_.n_graphs(); ++g) {
      for (const IrLayer& layer : ir_.graph(g).layers) n += layer.type == type ? 1 : 0;
    }
    return n;
  }

  /// All dequantizations, by the name of their Multiply.
  std::map<std::string, DequantizedView> dequantized() const {
    std::map<std::string, DequantizedView> found;
    for (std::size_t g = 0; g < ir_.n_graphs(); ++g) {
      const IrGraph& graph = ir_.graph(g);
      for (std::size_t m = 0; m < graph.layers.size(); ++m) {
        if (graph.layers[m].type != "Multiply") continue;
        if (auto view = view_of(g, m)) found[graph.layers[m].name] = std::move(*view);
      }
    }
    return found;
  }

  static std::vector<std::uint8_t> read_all(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::optional<FloatConstant> floats(std::size_t g, std::size_t layer) const {
    if (ir_.graph(g).layers[layer].type == "Convert") layer = ir_.graph(g).layers[layer].inputs[0].layer;
    if (ir_.graph(g).layers[layer].type != "Const") return std::nullopt;
    const IrConstant constant = ir_.constant(g, layer);
    FloatConstant result{constant.shape, std::vector<float>(constant.n_elements)};
    load_floats({constant.bytes, constant.type->dtype, constant.shape, constant.n_elements}, 0, result.values);
    return result;
  }

  std::optional<DequantizedView> view_of(std::size_t g, std::size_t multiply) const {
    const IrGraph& graph = ir_.graph(g);
    DequantizedView view;
    const auto scale = floats(g, graph.layers[multiply].inputs[1].layer);
    if (!scale) return std::nullopt;
    view.scale = *scale;
    std::size_t at = graph.layers[multiply].inputs[0].layer;
    if (graph.layers[at].type == "Subtract") {
      view.zero_point = floats(g, graph.layers[at].inputs[1].layer);
      at = graph.layers[at].inputs[0].layer;
    }
    if (graph.layers[at].type != "Convert") return std::nullopt;
    at = graph.layers[at].inputs[0].layer;
    if (graph.layers[at].type != "Const") return std::nullopt;
    const IrConstant constant = ir_.constant(g, at);
    if (constant.type == nullptr || !is_integer(constant.type->dtype)) return std::nullopt;
    view.codes_name = graph.layers[at].name;
    view.type = constant.type->name;
    view.shape = constant.shape;
    std::vector<float> codes(constant.n_elements);
    load_floats({constant.bytes, constant.type->dtype, constant.shape, constant.n_elements}, 0, codes);
    for (const float code : codes) view.codes.push_back(static_cast<int>(code));
    return view;
  }

  std::vector<std::uint8_t> xml_;
  std::vector<std::uint8_t> bin_;
  Ir ir_;
};

}  // namespace weightmill::testkit
