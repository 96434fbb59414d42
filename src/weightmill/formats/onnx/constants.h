#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "graph_index.h"
#include "onnx.h"
#include "payload.h"

namespace weightmill {

/// Why a value is no constant that can be read here; empty where it is an activation like any other.
struct NotConstant {
  std::string reason;
};

/// Finds what constants the values of a model are.
class Constants {
 public:
  /// All arguments must outlive the object. `ir_version`: from 4 on a caller may replace initialisers that are inputs
  /// too.
  Constants(const GraphIndex& index, const PayloadTable& payloads, std::int64_t ir_version)
      : index_(index), payloads_(payloads), ir_version_(ir_version) {}

  /// Follows Constant, Identity, Cast and Transpose nodes from a value back to the stored tensor. One thread at a time.
  /// Throws: bad_file if the stored data does not fit its shape, or a permutation its rank.
  std::variant<OnnxConstant, NotConstant> resolve(int value) const;

  /// As `ir_version`: takes initialisers for constants whoever may replace them.
  static constexpr std::int64_t kNoneReplaceable = 0;

 private:
  bool replaceable(const Value& value) const { return value.also_input && ir_version_ >= 4; }

  const GraphIndex& index_;
  const PayloadTable& payloads_;
  std::int64_t ir_version_;
  /// Bytes made of tensors' typed fields, by tensor or attribute: readers of one constant share them.
  mutable std::unordered_map<const void*, std::shared_ptr<const std::vector<std::uint8_t>>> typed_;
};

/// Whether `node` is one of the default operator set: its domain is empty or spelled out.
bool is_default_domain(const onnx_file::NodeProto& node);
const onnx_file::AttributeProto* find_attribute(const onnx_file::NodeProto& node, const std::string& name);
std::int64_t int_attribute(const onnx_file::NodeProto& node, const std::string& name, std::int64_t otherwise);

}  // namespace weightmill
