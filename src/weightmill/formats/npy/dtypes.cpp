#include "dtypes.h"

#include <array>
#include <utility>

namespace weightmill::npy {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 12> kLetters{{
    {DType::boolean, "b1"},
    {DType::i8, "i1"},
    {DType::i16, "i2"},
    {DType::i32, "i4"},
    {DType::i64, "i8"},
    {DType::u8, "u1"},
    {DType::u16, "u2"},
    {DType::u32, "u4"},
    {DType::u64, "u8"},
    {DType::f16, "f2"},
    {DType::f32, "f4"},
    {DType::f64, "f8"},
}};

}  // namespace

std::string_view letters_of(DType dtype) noexcept {
  for (const auto& [type, letters] : kLetters) {
    if (type == dtype) return letters;
  }
  return {};
}

std::optional<DType> dtype_of(std::string_view letters) noexcept {
  for (const auto& [type, name] : kLetters) {
    if (name == letters) return type;
  }
  return std::nullopt;
}

}  // namespace weightmill::npy
