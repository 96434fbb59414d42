#include "dtypes.h"

#include <array>
#include <utility>

namespace weightmill::safetensors {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 15> kWords{{
    {DType::boolean, "BOOL"},
    {DType::u8, "U8"},
    {DType::i8, "I8"},
    {DType::f8e5m2, "F8_E5M2"},
    {DType::f8e4m3, "F8_E4M3"},
    {DType::i16, "I16"},
    {DType::u16, "U16"},
    {DType::f16, "F16"},
    {DType::bf16, "BF16"},
    {DType::i32, "I32"},
    {DType::u32, "U32"},
    {DType::f32, "F32"},
    {DType::f64, "F64"},
    {DType::i64, "I64"},
    {DType::u64, "U64"},
}};

}  // namespace

std::string_view word_of(DType dtype) noexcept {
  for (const auto& [type, word] : kWords) {
    if (type == dtype) return word;
  }
  return {};
}

std::optional<DType> dtype_of(std::string_view word) noexcept {
  for (const auto& [type, name] : kWords) {
    if (name == word) return type;
  }
  return std::nullopt;
}

}  // namespace weightmill::safetensors
