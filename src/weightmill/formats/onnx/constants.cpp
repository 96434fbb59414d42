#include "constants.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include <weightmill/base/error.h>

#include "tensor_types.h"

namespace weightmill {
namespace {

using namespace onnx_file;
using Bytes = std::vector<std::uint8_t>;
using TypedBytes = std::unordered_map<const void*, std::shared_ptr<const Bytes>>;

/// More axes than any engine takes, and more nodes between a constant and its reader than any exporter leaves: each
/// reader of a constant keeps the one and walks through the other.
constexpr int kMaxAxes = 64;
constexpr std::size_t kMaxWay = 256;

/// The elements of a repeated field as the little-endian bytes raw_data would hold.
template <class To, class Field>
Bytes to_bytes(const Field& field) {
  Bytes bytes(static_cast<std::size_t>(field.size()) * sizeof(To));
  for (int i = 0; i < field.size(); ++i) {
    const To value = static_cast<To>(field.Get(i));
    std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(To), &value, sizeof(To));
  }
  return bytes;
}

/// What a tensor without raw_data holds in the field that onnx.proto names for its type.
Bytes typed_bytes(const TensorProto& tensor) {
  switch (tensor.data_type()) {
    case TensorProto::FLOAT:
      return to_bytes<float>(tensor.float_data());
    case TensorProto::DOUBLE:
      return to_bytes<double>(tensor.double_data());
    case TensorProto::INT64:
      return to_bytes<std::int64_t>(tensor.int64_data());
    case TensorProto::UINT32:
      return to_bytes<std::uint32_t>(tensor.uint64_data());
    case TensorProto::UINT64:
      return to_bytes<std::uint64_t>(tensor.uint64_data());
    case TensorProto::INT32:
      return to_bytes<std::int32_t>(tensor.int32_data());
    case TensorProto::INT16:
    case TensorProto::UINT16:
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
      return to_bytes<std::uint16_t>(tensor.int32_data());
    default:
      return to_bytes<std::uint8_t>(tensor.int32_data());  // 8 bits, or packed elements of 4 and 2 bits
  }
}

/// Names are for messages and reports: a long one must not fill the memory once for each that reads the tensor.
constexpr std::size_t kMaxName = 512;

OnnxConstant as_stored(const std::string& name, DType dtype, Shape shape) {
  OnnxConstant constant;
  constant.name = name.substr(0, kMaxName);
  constant.stored_dtype = constant.dtype = dtype;
  constant.strides.assign(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;) {
    // Overflow-safe: n_elements() has been asked about the whole shape, and zero extents only make strides smaller.
    constant.strides[axis - 1] = constant.strides[axis] * std::max<std::int64_t>(shape[axis], 1);
  }
  constant.stored_shape = shape;
  constant.shape = std::move(shape);
  return constant;
}

/// What a tensor or an attribute holds, made by `make` the first time that it is asked for.
template <class Make>
void set_typed(OnnxConstant& constant, TypedBytes& known, const void* owner, const Make& make) {
  auto& bytes = known[owner];
  if (bytes == nullptr) bytes = std::make_shared<const Bytes>(make());
  constant.owned = bytes;
  constant.bytes = *bytes;
}

std::variant<OnnxConstant, NotConstant> stored_tensor(const std::string& name, const TensorProto& tensor,
                                                      const PayloadTable& payloads, TypedBytes& known) {
  const DType dtype = dtype_of(tensor.data_type());
  if (dtype == DType::other) return NotConstant{"its type is not supported"};
  if (tensor.dims_size() > kMaxAxes) return NotConstant{fmt::format("it has more than {} axes", kMaxAxes)};
  const std::uint64_t needed = needed_bytes(tensor).value();  // each type with a name here has a size
  OnnxConstant constant = as_stored(name, dtype, shape_of(tensor));
  if (tensor.has_raw_data()) {
    const Payload& payload = payloads.at(tensor.raw_data());
    constant.bytes = payload.view;
    constant.file = payload.file;
    constant.owned = payload.owned;
  } else {
    set_typed(constant, known, &tensor, [&] { return typed_bytes(tensor); });
  }
  if (constant.bytes.size() != needed) {
    fail(ErrorCode::bad_file, "tensor " + name,
         fmt::format("shape {} of {} needs {} bytes, but it has {}", to_string(constant.shape), name_of(dtype), needed,
                     constant.bytes.size()));
  }
  return constant;
}

/// What a Constant node gives.
std::variant<OnnxConstant, NotConstant> constant_node(const NodeProto& node, const PayloadTable& payloads,
                                                      TypedBytes& known) {
  const std::string name = node.output_size() > 0 ? node.output(0) : node.name();
  if (node.attribute_size() != 1) return NotConstant{"its Constant node has no value of its own"};
  const AttributeProto& attribute = node.attribute(0);
  if (!attribute.ref_attr_name().empty()) return NotConstant{"it is an argument of its function"};
  if (attribute.name() == "value" && attribute.has_t()) return stored_tensor(name, attribute.t(), payloads, known);
  OnnxConstant constant;
  if (attribute.name() == "value_float") {
    constant = as_stored(name, DType::f32, {});
    google::protobuf::RepeatedField<float> one;
    one.Add(attribute.f());
    set_typed(constant, known, &attribute, [&] { return to_bytes<float>(one); });
  } else if (attribute.name() == "value_floats") {
    constant = as_stored(name, DType::f32, {attribute.floats_size()});
    set_typed(constant, known, &attribute, [&] { return to_bytes<float>(attribute.floats()); });
  } else {
    return NotConstant{"its Constant node holds neither a dense tensor nor floats"};
  }
  return constant;
}

/// Puts the axes of `constant` into the order of a Transpose node.
void transpose(OnnxConstant& constant, const NodeProto& node) {
  const std::size_t rank = constant.shape.size();
  std::vector<std::int64_t> order(rank);
  std::iota(order.rbegin(), order.rend(), 0);
  if (const AttributeProto* perm = find_attribute(node, "perm")) order.assign(perm->ints().begin(), perm->ints().end());
  std::vector<std::int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool valid = sorted.size() == rank;
  for (std::size_t i = 0; valid && i < rank; ++i) valid = sorted[i] == static_cast<std::int64_t>(i);
  if (!valid) {
    fail(ErrorCode::bad_file, fmt::format("node {}", label_of(node)),
         fmt::format("perm {} does not order the {} axes of its input", to_string(order), rank));
  }
  const OnnxConstant before = constant;
  for (std::size_t i = 0; i < rank; ++i) {
    constant.shape[i] = before.shape[static_cast<std::size_t>(order[i])];
    constant.strides[i] = before.strides[static_cast<std::size_t>(order[i])];
  }
}

bool converts_exactly_to_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::i8 ||
         dtype == DType::u8 || dtype == DType::i16 || dtype == DType::u16;
}

/// Adds a Cast node, or returns why its arithmetic is not done here.
std::optional<NotConstant> cast(OnnxConstant& constant, const NodeProto& node) {
  const DType to = dtype_of(static_cast<int>(int_attribute(node, "to", 0)));
  if (to == constant.dtype) return std::nullopt;
  const bool to_float = to == DType::f32 || to == DType::f16 || to == DType::bf16;
  // One rounding only: float64 and int32 go to float32, which is what every engine does with them.
  const bool one_rounding = converts_exactly_to_float(constant.dtype) ||
                            (to == DType::f32 && (constant.dtype == DType::f64 || constant.dtype == DType::i32));
  if (!to_float || !one_rounding) {
    return NotConstant{fmt::format("it is behind a Cast from {} to {}", name_of(constant.dtype), name_of(to))};
  }
  constant.casts.push_back(to);
  constant.dtype = to;
  return std::nullopt;
}

}  // namespace

bool is_default_domain(const NodeProto& node) { return node.domain().empty() || node.domain() == "ai.onnx"; }

const AttributeProto* find_attribute(const NodeProto& node, const std::string& name) {
  for (const AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

std::int64_t int_attribute(const NodeProto& node, const std::string& name, std::int64_t otherwise) {
  const AttributeProto* attribute = find_attribute(node, name);
  return attribute != nullptr ? attribute->i() : otherwise;
}

std::variant<OnnxConstant, NotConstant> Constants::resolve(int value) const {
  std::vector<const NodeProto*> way;  // from the reader to the stored tensor
  std::variant<OnnxConstant, NotConstant> result = NotConstant{};
  for (int at = value;;) {
    const Value& v = index_.value(at);
    if (v.origin == Origin::initializer) {
      if (replaceable(v)) return NotConstant{fmt::format("a caller may replace {}, which is an input too", v.name)};
      result = stored_tensor(v.name, index_.scope(v.scope).graph->initializer(v.index), payloads_, typed_);
      break;
    }
    if (v.origin != Origin::node) return NotConstant{};
    const NodeProto& node = index_.node({v.scope, v.index});
    if (!is_default_domain(node)) return NotConstant{};
    if (node.op_type() == "Constant") {
      result = constant_node(node, payloads_, typed_);
      break;
    }
    const bool passes = node.op_type() == "Identity" || node.op_type() == "Cast" || node.op_type() == "Transpose";
    if (!passes || node.input_size() != 1 || node.input(0).empty()) return NotConstant{};
    if (way.size() == kMaxWay) return NotConstant{fmt::format("more than {} nodes lie before it", kMaxWay)};
    way.push_back(&node);
    at = index_.resolve(v.scope, node.input(0));  // ends: the index has refused cycles
  }
  auto* constant = std::get_if<OnnxConstant>(&result);
  for (auto node = way.rbegin(); constant != nullptr && node != way.rend(); ++node) {
    if ((*node)->op_type() == "Transpose") transpose(*constant, **node);
    if ((*node)->op_type() != "Cast") continue;
    if (auto refusal = cast(*constant, **node)) return *refusal;
  }
  return result;
}

}  // namespace weightmill
