#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <onnx_file.pb.h>

#include <weightmill/model/dtype.h>
#include <weightmill/model/shape.h>

namespace weightmill {

/// The element type that a TensorProto.DataType stands for; DType::other where this program has no word for it.
DType dtype_of(int data_type) noexcept;
/// The TensorProto.DataType of an integer type. Requires: is_integer(dtype).
onnx_file::TensorProto::DataType data_type_of(DType dtype) noexcept;

Shape shape_of(const onnx_file::TensorProto& tensor);

/// Bytes that a tensor's type and shape ask for; nothing where the type has no fixed size (strings, unknown types).
/// Throws: bad_file if an extent is negative or the product is too large (names the tensor).
std::optional<std::uint64_t> needed_bytes(const onnx_file::TensorProto& tensor);

/// "tensor NAME", for messages.
std::string where_of(const onnx_file::TensorProto& tensor);

}  // namespace weightmill
