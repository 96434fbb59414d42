#include "tensors.h"

#include <utility>

#include <fmt/format.h>

#include <weightmill/base/error.h>

#include "quantization.h"
#include "sparsity_reader.h"

namespace weightmill {
namespace {

Shape read_shape(Container& container, const flatbuffers::Vector<std::int32_t>* extents, std::string_view where) {
  Shape shape = container.numbers<std::int64_t>(extents);
  for (const std::int64_t extent : shape) {
    if (extent < -1) fail(ErrorCode::bad_file, where, fmt::format("has shape {}", to_string(shape)));
  }
  return shape;
}

std::string type_name(tflite::TensorType type) {
  const std::string name = tflite::EnumNameTensorType(type);
  return name.empty() ? fmt::format("TYPE_{}", static_cast<int>(type)) : name;
}

/// Bits of an element, of types that DType does not know too; 0 where elements have no fixed size.
unsigned element_bits(tflite::TensorType type) {
  switch (type) {
    case tflite::TensorType::INT2: return 2;
    case tflite::TensorType::COMPLEX64: return 64;
    case tflite::TensorType::COMPLEX128: return 128;
    default: return size_bits(to_dtype(type));
  }
}

void check_size(const Tensor& tensor, tflite::TensorType type, std::string_view where) {
  const unsigned bits = element_bits(type);
  if (bits == 0) return;
  const std::uint64_t n = n_elements(tensor.shape, where);
  std::uint64_t n_bits = 0;
  const bool overflows = __builtin_mul_overflow(n, std::uint64_t{bits}, &n_bits);
  const std::uint64_t wanted = n_bits / 8 + (n_bits % 8 != 0 ? 1 : 0);
  if (overflows || tensor.data.size() != wanted) {
    fail(ErrorCode::bad_file, where,
         fmt::format("has {} bytes of data, wanted {} for {}{}", tensor.data.size(),
                     overflows ? "far more" : std::to_string(wanted), tensor.format_dtype, to_string(tensor.shape)));
  }
}

void densify_into(Tensor& tensor, Container& container, const tflite::SparsityParameters& source,
                  std::string_view where) {
  tensor.owned = std::make_shared<const std::vector<std::uint8_t>>(read_dense(container, source, tensor, where));
  tensor.data = *tensor.owned;
  tensor.sparse = true;
}

}  // namespace

Tensor read_tensor(Container& container, const tflite::Tensor& source, std::string_view where) {
  if (source.external_buffer() != 0) {
    fail(ErrorCode::unsupported, where,
         fmt::format("its data is in another file, external buffer {}", source.external_buffer()));
  }
  Tensor tensor;
  tensor.name = container.text(source.name());
  tensor.dtype = to_dtype(source.type());
  tensor.format_dtype = type_name(source.type());
  tensor.shape = read_shape(container, source.shape(), where);
  tensor.shape_signature = container.numbers<std::int64_t>(source.shape_signature());
  tensor.quantization = read_affine(container, source.quantization(), tensor.shape, where);
  tensor.quantization_details = quantization_details(source.quantization());
  tensor.variable = source.is_variable();
  tensor.data = container.buffer(source.buffer(), where);
  tensor.constant = !tensor.data.empty() || source.sparsity() != nullptr;
  if (!tensor.constant) return tensor;
  tensor.buffer = source.buffer();
  if (source.sparsity() != nullptr) densify_into(tensor, container, *source.sparsity(), where);
  check_size(tensor, source.type(), where);
  return tensor;
}

DType to_dtype(tflite::TensorType type) noexcept {
  using enum tflite::TensorType;
  switch (type) {
    case FLOAT16: return DType::f16;
    case BFLOAT16: return DType::bf16;
    case FLOAT32: return DType::f32;
    case FLOAT64: return DType::f64;
    case FLOAT8_E4M3FN: return DType::f8e4m3;
    case FLOAT8_E5M2: return DType::f8e5m2;
    case INT4: return DType::i4;
    case INT8: return DType::i8;
    case INT16: return DType::i16;
    case INT32: return DType::i32;
    case INT64: return DType::i64;
    case UINT4: return DType::u4;
    case UINT8: return DType::u8;
    case UINT16: return DType::u16;
    case UINT32: return DType::u32;
    case UINT64: return DType::u64;
    case BOOL: return DType::boolean;
    default: return DType::other;
  }
}

}  // namespace weightmill
