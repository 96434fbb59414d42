#pragma once

#include <cstdint>
#include <string_view>

namespace weightmill {

/// Element type of a tensor, in every format the same word. Types of 4 and 2 bits are packed two
/// or four to a byte, the first element in the lowest bits.
enum class DType : std::uint8_t {
  f16, bf16, f32, f64, f8e4m3, f8e5m2,
  i2, i4, i8, i16, i32, i64,
  u2, u4, u8, u16, u32, u64,
  boolean,
  other,  ///< strings, complex, resources, types newer than this program: carried, never computed with
};

/// "float32", "int8" …, as numpy says it; "int4", "bfloat16" and so on where numpy has no word.
std::string_view name_of(DType dtype) noexcept;

/// Bits an element takes in memory; 0 for DType::other.
unsigned size_bits(DType dtype) noexcept;

bool is_float(DType dtype) noexcept;
bool is_integer(DType dtype) noexcept;  ///< signed and unsigned, without boolean
bool is_signed_integer(DType dtype) noexcept;

/// The least and the greatest number of an integer type of up to 16 bits.
std::int32_t min_code(DType dtype) noexcept;
std::int32_t max_code(DType dtype) noexcept;

}  // namespace weightmill
