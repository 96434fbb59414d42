#include "tensor_types.h"

#include <array>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

using onnx_file::TensorProto;

struct Type {
  int data_type;
  DType dtype;
  unsigned bits;  ///< 0: no fixed size, or not known
};

/// Indexed by TensorProto.DataType.
constexpr std::array<Type, 27> kTypes{{
    {TensorProto::UNDEFINED, DType::other, 0},
    {TensorProto::FLOAT, DType::f32, 32},
    {TensorProto::UINT8, DType::u8, 8},
    {TensorProto::INT8, DType::i8, 8},
    {TensorProto::UINT16, DType::u16, 16},
    {TensorProto::INT16, DType::i16, 16},
    {TensorProto::INT32, DType::i32, 32},
    {TensorProto::INT64, DType::i64, 64},
    {TensorProto::STRING, DType::other, 0},
    {TensorProto::BOOL, DType::boolean, 8},
    {TensorProto::FLOAT16, DType::f16, 16},
    {TensorProto::DOUBLE, DType::f64, 64},
    {TensorProto::UINT32, DType::u32, 32},
    {TensorProto::UINT64, DType::u64, 64},
    {TensorProto::COMPLEX64, DType::other, 64},
    {TensorProto::COMPLEX128, DType::other, 128},
    {TensorProto::BFLOAT16, DType::bf16, 16},
    {TensorProto::FLOAT8E4M3FN, DType::f8e4m3, 8},
    {TensorProto::FLOAT8E4M3FNUZ, DType::other, 8},
    {TensorProto::FLOAT8E5M2, DType::f8e5m2, 8},
    {TensorProto::FLOAT8E5M2FNUZ, DType::other, 8},
    {TensorProto::UINT4, DType::u4, 4},
    {TensorProto::INT4, DType::i4, 4},
    {TensorProto::FLOAT4E2M1, DType::other, 4},
    {TensorProto::FLOAT8E8M0, DType::other, 8},
    {TensorProto::UINT2, DType::u2, 2},
    {TensorProto::INT2, DType::i2, 2},
}};

/// The row of a type, or the first one for what is newer than the table.
const Type& type_of(int data_type) noexcept {
  const bool known = data_type >= 0 && data_type < static_cast<int>(kTypes.size());
  return kTypes[known ? static_cast<std::size_t>(data_type) : 0];
}

}  // namespace

DType dtype_of(int data_type) noexcept { return type_of(data_type).dtype; }

TensorProto::DataType data_type_of(DType dtype) noexcept {
  for (const Type& type : kTypes) {
    if (type.dtype == dtype) return static_cast<TensorProto::DataType>(type.data_type);
  }
  return TensorProto::UNDEFINED;
}

Shape shape_of(const TensorProto& tensor) { return {tensor.dims().begin(), tensor.dims().end()}; }

std::optional<std::uint64_t> needed_bytes(const TensorProto& tensor) {
  const std::uint64_t n = n_elements(shape_of(tensor), where_of(tensor));
  const unsigned bits = type_of(tensor.data_type()).bits;
  if (n > (std::uint64_t{1} << 56)) fail(ErrorCode::bad_file, where_of(tensor), "is too large");
  if (bits == 0) return std::nullopt;
  return (n * bits + 7) / 8;
}

std::string where_of(const TensorProto& tensor) {
  return "tensor " + (tensor.name().empty() ? std::string("without a name") : tensor.name());
}

}  // namespace weightmill
