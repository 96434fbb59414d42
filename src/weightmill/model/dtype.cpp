#include "dtype.h"

#include <array>
#include <cstddef>

namespace weightmill {
namespace {

struct Traits {
  std::string_view name;
  unsigned bits;
  bool floating;
  bool integer;
};

/// In the order of the enumerators.
constexpr std::array<Traits, static_cast<std::size_t>(DType::other) + 1> kTraits{{
    {"float16", 16, true, false},
    {"bfloat16", 16, true, false},
    {"float32", 32, true, false},
    {"float64", 64, true, false},
    {"float8_e4m3", 8, true, false},
    {"float8_e5m2", 8, true, false},
    {"int2", 2, false, true},
    {"int4", 4, false, true},
    {"int8", 8, false, true},
    {"int16", 16, false, true},
    {"int32", 32, false, true},
    {"int64", 64, false, true},
    {"uint2", 2, false, true},
    {"uint4", 4, false, true},
    {"uint8", 8, false, true},
    {"uint16", 16, false, true},
    {"uint32", 32, false, true},
    {"uint64", 64, false, true},
    {"bool", 8, false, false},
    {"other", 0, false, false},
}};

const Traits& traits(DType dtype) noexcept { return kTraits[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::string_view name_of(DType dtype) noexcept { return traits(dtype).name; }
unsigned size_bits(DType dtype) noexcept { return traits(dtype).bits; }
bool is_float(DType dtype) noexcept { return traits(dtype).floating; }
bool is_integer(DType dtype) noexcept { return traits(dtype).integer; }

bool is_signed_integer(DType dtype) noexcept {
  return dtype == DType::i2 || dtype == DType::i4 || dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 ||
         dtype == DType::i64;
}

std::int32_t min_code(DType dtype) noexcept {
  return is_signed_integer(dtype) ? -(1 << (size_bits(dtype) - 1)) : 0;
}

std::int32_t max_code(DType dtype) noexcept {
  return (1 << (size_bits(dtype) - (is_signed_integer(dtype) ? 1 : 0))) - 1;
}

}  // namespace weightmill
