#include "ir_candidates.h"

#include <charconv>

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

Numbers numbers_of(const IrConstant& constant) {
  return {constant.bytes, constant.type == nullptr ? DType::other : constant.type->dtype, constant.shape,
          constant.n_elements};
}

/// Looks at one graph.
class Matcher {
 public:
  Matcher(const Ir& ir, std::size_t g, const FoldOptions& options)
      : ir_(ir), g_(g), graph_(ir.graph(g)), is_mo2021_(options.semantics == FoldSemantics::mo2021) {}

  std::optional<IrCandidate> fake_quantize(std::size_t layer) const;
  std::optional<IrCandidate> integer_chain(std::size_t layer) const;

 private:
  const IrLayer& at(std::size_t layer) const { return graph_.layers[layer]; }
  std::size_t source(std::size_t layer, std::size_t input) const { return at(layer).inputs[input].layer; }
  bool is(std::size_t layer, const char* type) const { return at(layer).type == type; }
  std::optional<std::size_t> only_user(std::size_t layer, const char* type) const;
  DType destination(std::size_t convert) const;
  /// The Const at `layer`, or behind one Convert there.
  std::optional<std::size_t> constant_behind(std::size_t layer, bool through_convert) const;

  std::string read_weights(std::size_t layer, IrCandidate& candidate, FakeQuantize& operation) const;
  std::string read_levels(std::size_t layer, FakeQuantize& operation) const;
  std::string read_limit(std::size_t layer, std::size_t input, const char* name, IrCandidate& candidate,
                         FakeQuantize& operation, Numbers& limit) const;
  std::string read_operation(std::size_t layer, IrCandidate& candidate, FakeQuantize& operation) const;
  std::optional<IrQuantizedChain> chain_behind(std::size_t layer) const;
  std::string read_chain_zero_point(IrQuantizedChain& found, IrCandidate& candidate) const;

  const Ir& ir_;
  std::size_t g_;
  const IrGraph& graph_;
  bool is_mo2021_;
};

std::optional<std::size_t> Matcher::only_user(std::size_t layer, const char* type) const {
  if (at(layer).uses.size() != 1 || !is(at(layer).uses.front().layer, type)) return std::nullopt;
  return at(layer).uses.front().layer;
}

DType Matcher::destination(std::size_t convert) const {
  const IrType* type = ir_type(ir_.attribute(g_, convert, "destination_type").value_or(""));
  return type == nullptr ? DType::other : type->dtype;
}

std::optional<std::size_t> Matcher::constant_behind(std::size_t layer, bool through_convert) const {
  if (is(layer, "Const")) return layer;
  if (through_convert && is(layer, "Convert") && is(source(layer, 0), "Const")) return source(layer, 0);
  return std::nullopt;
}

std::string Matcher::read_weights(std::size_t layer, IrCandidate& candidate, FakeQuantize& operation) const {
  const std::size_t data = source(layer, 0);
  const auto constant = constant_behind(data, !is_mo2021_);
  if (!constant) return fmt::format("its data comes through {}, not straight from a constant", at(data).type);
  operation.weights = numbers_of(ir_.constant(g_, *constant));
  operation.type = is(data, "Convert") ? destination(data) : operation.weights.dtype;
  candidate.constants.push_back(*constant);
  candidate.row.constant = at(*constant).name;
  candidate.row.shape = operation.weights.shape;
  candidate.row.type_before = candidate.row.type_after = operation.weights.dtype;
  candidate.row.bytes_before = candidate.row.bytes_after = operation.weights.bytes.size();
  return "";
}

std::string Matcher::read_levels(std::size_t layer, FakeQuantize& operation) const {
  const std::string text = ir_.attribute(g_, layer, "levels").value_or("");
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), operation.levels);
  if (error != std::errc() || rest != text.data() + text.size())
    return fmt::format("levels are '{}': no whole number", text);
  const std::string broadcast = ir_.attribute(g_, layer, "auto_broadcast").value_or("numpy");
  if (broadcast != "numpy" && broadcast != "none") return fmt::format("broadcasts as '{}', not as numpy", broadcast);
  return "";
}

std::string Matcher::read_limit(std::size_t layer, std::size_t input, const char* name, IrCandidate& candidate,
                                FakeQuantize& operation, Numbers& limit) const {
  const std::size_t from = source(layer, input);
  const auto constant = constant_behind(from, is_mo2021_);
  if (!constant) return fmt::format("{} comes through {}, not straight from a constant", name, at(from).type);
  limit = numbers_of(ir_.constant(g_, *constant));
  candidate.constants.push_back(*constant);
  if (from == *constant) return "";
  if (destination(from) != operation.type || !can_load_floats(limit.dtype)) return fmt::format("{} is converted", name);
  std::vector<std::uint8_t> bytes(limit.size * Precision{operation.type}.size_bytes());
  for (std::uint64_t i = 0; i < limit.size; ++i) {
    Precision{operation.type}.store(number_at(limit, i), bytes.data() + i * Precision{operation.type}.size_bytes());
  }
  candidate.owned.push_back(std::move(bytes));
  limit.bytes = candidate.owned.back();
  limit.dtype = operation.type;
  return "";
}

std::string Matcher::read_operation(std::size_t layer, IrCandidate& candidate, FakeQuantize& operation) const {
  if (auto why = read_weights(layer, candidate, operation); !why.empty()) return why;
  if (auto why = read_levels(layer, operation); !why.empty()) return why;
  struct Limit {
    const char* name;
    Numbers* numbers;
  };
  std::size_t input = 0;
  for (const Limit& limit :
       {Limit{"input_low", &operation.input_low}, Limit{"input_high", &operation.input_high},
        Limit{"output_low", &operation.output_low}, Limit{"output_high", &operation.output_high}}) {
    if (auto why = read_limit(layer, ++input, limit.name, candidate, operation, *limit.numbers); !why.empty())
      return why;
  }
  return "";
}

/// The dequantization that follows a FakeQuantize, if one does.
std::optional<IrQuantizedChain> Matcher::chain_behind(std::size_t layer) const {
  const auto low = only_user(layer, "Convert");
  if (!low || !(is_integer(destination(*low)) || destination(*low) == DType::boolean)) return std::nullopt;
  const auto high = only_user(*low, "Convert");
  if (!high || !is_float(destination(*high))) return std::nullopt;
  IrQuantizedChain found;
  found.fake_quantize = layer;
  found.convert_low = *low;
  found.convert_high = *high;
  found.chain.code_type = destination(*low);
  found.chain.arithmetic = destination(*high);
  if (only_user(*high, "Multiply")) return found;
  found.subtract = only_user(*high, "Subtract");
  if (!found.subtract || at(*high).uses.front().input != 0 || !only_user(*found.subtract, "Multiply"))
    return std::nullopt;
  found.chain.subtracts = true;
  return found;
}

std::string Matcher::read_chain_zero_point(IrQuantizedChain& found, IrCandidate& candidate) const {
  if (!found.subtract) return "";
  const DType type = found.chain.arithmetic;
  if (type != DType::f32 && type != DType::f16 && type != DType::bf16)
    return fmt::format("subtracts in {}", name_of(type));
  const auto constant = constant_behind(source(*found.subtract, 1), /*through_convert=*/true);
  if (!constant) return "its zero point is no constant";
  found.chain.zero_point = numbers_of(ir_.constant(g_, *constant));
  candidate.constants.push_back(*constant);
  return "";
}

std::optional<IrCandidate> Matcher::fake_quantize(std::size_t layer) const {
  if (!is(layer, "FakeQuantize") || !at(source(layer, 0)).constant) return std::nullopt;
  IrCandidate candidate;
  candidate.graph = g_;
  candidate.row.name = at(layer).name;
  FakeQuantize operation;
  candidate.row.reason = read_operation(layer, candidate, operation);
  if (!candidate.row.reason.empty()) return candidate;
  auto chain = is_mo2021_ ? std::nullopt : chain_behind(layer);
  if (!chain) {
    candidate.what = IrFakeQuantize{operation, layer};
    return candidate;
  }
  chain->chain.quantize = operation;
  candidate.row.reason = read_chain_zero_point(*chain, candidate);
  if (candidate.row.reason.empty()) candidate.what = *chain;
  return candidate;
}

std::optional<IrCandidate> Matcher::integer_chain(std::size_t layer) const {
  if (!is(layer, "Subtract") || !is(source(layer, 0), "Convert")) return std::nullopt;
  const std::size_t convert = source(layer, 0);
  const std::size_t constant = source(convert, 0);
  const auto zero = constant_behind(source(layer, 1), /*through_convert=*/true);
  const bool alone = at(convert).uses.size() == 1 && at(constant).uses.size() == 1;
  if (!is(constant, "Const") || !zero || !alone) return std::nullopt;
  IrIntegerChain found{
      {numbers_of(ir_.constant(g_, constant)), numbers_of(ir_.constant(g_, *zero)), destination(convert)},
      constant,
      convert,
      layer};
  if (!is_integer(found.chain.codes.dtype) || !is_float(found.chain.arithmetic)) return std::nullopt;
  IrCandidate candidate;
  candidate.graph = g_;
  candidate.row.name = at(layer).name;
  candidate.row.constant = at(constant).name;
  candidate.row.shape = found.chain.codes.shape;
  candidate.row.type_before = candidate.row.type_after = found.chain.codes.dtype;
  candidate.row.bytes_before = candidate.row.bytes_after = found.chain.codes.bytes.size();
  candidate.constants = {constant, *zero};
  candidate.what = std::move(found);
  return candidate;
}

}  // namespace

std::vector<IrCandidate> find_candidates(const Ir& ir, std::size_t graph, const FoldOptions& options) {
  const Matcher matcher(ir, graph, options);
  const bool chains = options.zero_points_of_chains || options.semantics == FoldSemantics::mo2021;
  std::vector<IrCandidate> found;
  for (std::size_t layer = 0; layer < ir.graph(graph).layers.size(); ++layer) {
    auto candidate = matcher.fake_quantize(layer);
    if (!candidate && chains) candidate = matcher.integer_chain(layer);
    if (candidate) found.push_back(std::move(*candidate));
  }
  return found;
}

}  // namespace weightmill
