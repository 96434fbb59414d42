#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "onnx_model.h"
#include "tensor_types.h"

namespace weightmill {
namespace {

using namespace onnx_file;

/// ONNX Runtime's own domain, whose QuantizeLinear has had `axis` and 16 and 4 bits before the default domain had them.
bool is_microsoft_domain(const NodeProto& node) { return node.domain() == "com.microsoft"; }

/// The operator set that first has an attribute of QuantizeLinear.
struct KnownAttribute {
  std::string_view name;
  std::int64_t since;
  bool microsoft;
};
constexpr std::array<KnownAttribute, 5> kAttributes{{
    {"axis", 13, true},
    {"saturate", 19, false},
    {"block_size", 21, true},
    {"output_dtype", 21, false},
    {"precision", 23, false},
}};

/// The first operator set that has the operator.
constexpr std::int64_t kFirstOpset = 10;

/// The first operator set that divides in the type of the scale; before, every engine divides in float32.
constexpr std::int64_t kDividesInScaleType = 23;

std::string refuse_attributes(const NodeProto& node, std::int64_t opset) {
  const bool microsoft = is_microsoft_domain(node);
  if (!microsoft && opset < kFirstOpset) return fmt::format("operator set {} has no QuantizeLinear", opset);
  for (const AttributeProto& attribute : node.attribute()) {
    if (!attribute.ref_attr_name().empty()) return "attribute " + attribute.name() + " is an argument of its function";
    const auto known = std::find_if(kAttributes.begin(), kAttributes.end(),
                                    [&](const KnownAttribute& k) { return k.name == attribute.name(); });
    if (known == kAttributes.end() || !(microsoft ? known->microsoft : opset >= known->since)) {
      return fmt::format("attribute {} is not known for its operator set", attribute.name());
    }
  }
  return "";
}

/// The type that data / scale is rounded to.
DType division_of(const NodeProto& node, std::int64_t opset, DType scale) {
  if (is_microsoft_domain(node) || opset < kDividesInScaleType) return DType::f32;
  const std::int64_t precision = int_attribute(node, "precision", 0);
  return precision == 0 ? scale : dtype_of(static_cast<int>(precision));
}

/// Takes the constant out of `found`, or notes why there is none.
void take(std::variant<OnnxConstant, NotConstant> found, std::string_view what, OnnxConstant& constant,
          std::string& reason) {
  if (auto* value = std::get_if<OnnxConstant>(&found)) {
    constant = std::move(*value);
  } else if (reason.empty()) {
    const std::string& why = std::get<NotConstant>(found).reason;
    reason = fmt::format("its {}: {}", what, why.empty() ? "computed at run time" : why);
  }
}

std::string refuse_type(const OnnxQuantize& site, const NodeProto& node) {
  const std::int64_t wanted = int_attribute(node, "output_dtype", 0);
  if (wanted != 0 && site.zero_point && data_type_of(site.code_dtype) != wanted) {
    return "output_dtype is not the type of the zero point";
  }
  switch (site.code_dtype) {
    case DType::i2:
    case DType::i4:
    case DType::i8:
    case DType::i16:
    case DType::u2:
    case DType::u4:
    case DType::u8:
    case DType::u16:
      return "";
    default:
      return fmt::format("codes of type {} are kept as they are", name_of(site.code_dtype));
  }
}

/// Fills a record for the node `ref`; nothing if its data is an activation.
class SiteReader {
 public:
  SiteReader(const ModelProto& model, const GraphIndex& index, const Constants& constants)
      : model_(model), index_(index), constants_(constants) {}

  std::optional<OnnxQuantize> read(NodeRef ref) const {
    const NodeProto& node = index_.node(ref);
    const bool quantize = node.op_type() == "QuantizeLinear" && (is_default_domain(node) || is_microsoft_domain(node));
    if (!quantize || node.input_size() < 2 || node.input_size() > 3 || node.output_size() != 1) return std::nullopt;
    auto data = resolve(ref.scope, node.input(0));
    if (const auto* none = std::get_if<NotConstant>(&data); none != nullptr && none->reason.empty())
      return std::nullopt;
    OnnxQuantize site;
    site.graph = index_.scope(ref.scope).path;
    site.node = label_of(node);
    site.output = node.output(0);
    site.axis = int_attribute(node, "axis", 1);
    site.block_size = int_attribute(node, "block_size", 0);
    site.data.name = node.input(0);
    const std::int64_t opset = opset_of(model_, index_, ref.scope);
    site.left_reason = refuse_attributes(node, opset);
    take(std::move(data), "data", site.data, site.left_reason);
    read_parameters(ref.scope, node, site);
    site.division = division_of(node, opset, site.scale.dtype);
    if (site.left_reason.empty()) site.left_reason = refuse_type(site, node);
    if (site.left_reason.empty()) site.left_reason = refuse_output(ref.scope, site.output);
    return site;
  }

 private:
  std::variant<OnnxConstant, NotConstant> resolve(int scope, const std::string& name) const {
    const int value = name.empty() ? -1 : index_.resolve(scope, name);
    return value < 0 ? NotConstant{} : constants_.resolve(value);
  }

  void read_parameters(int scope, const NodeProto& node, OnnxQuantize& site) const {
    take(resolve(scope, node.input(1)), "scale", site.scale, site.left_reason);
    if (node.input_size() == 3 && !node.input(2).empty()) {
      take(resolve(scope, node.input(2)), "zero point", site.zero_point.emplace(), site.left_reason);
      site.code_dtype = site.zero_point->dtype;
    } else {
      const std::int64_t wanted = int_attribute(node, "output_dtype", 0);
      site.code_dtype = wanted == 0 ? DType::u8 : dtype_of(static_cast<int>(wanted));
    }
  }

  std::string refuse_output(int scope, const std::string& output) const {
    const int value = index_.resolve(scope, output);
    if (value < 0 || index_.value(value).readers.empty()) return "nothing reads its output";
    return index_.value(value).is_output ? "its output is an output of the graph" : "";
  }

  const ModelProto& model_;
  const GraphIndex& index_;
  const Constants& constants_;
};

}  // namespace

std::vector<OnnxQuantize> OnnxModel::quantize_of_constants() const {
  const GraphIndex index = impl_->index();
  const Constants constants(index, impl_->payloads, impl_->proto.ir_version());
  const SiteReader reader(impl_->proto, index, constants);
  std::vector<OnnxQuantize> sites;
  std::size_t number = 0;
  for (int scope = 0; scope < static_cast<int>(index.scopes().size()); ++scope) {
    for (int node = 0; node < index.scope(scope).nodes().size(); ++node, ++number) {
      auto site = reader.read({scope, node});
      if (!site) continue;
      site->index = number;
      sites.push_back(std::move(*site));
    }
  }
  return sites;
}

}  // namespace weightmill
