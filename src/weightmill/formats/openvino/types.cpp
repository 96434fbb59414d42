#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <weightmill/base/bits.h>
#include <weightmill/base/error.h>
#include <weightmill/base/narrow.h>

#include "../openvino.h"

namespace weightmill {
namespace {

/// Packed types fill whole groups: two 4-bit elements share a byte, eight 3-bit ones share three.
constexpr std::array kTypes{
    IrType{"f32", "FP32", DType::f32, 1, 4},         IrType{"f16", "FP16", DType::f16, 1, 2},
    IrType{"bf16", "BF16", DType::bf16, 1, 2},       IrType{"f64", "FP64", DType::f64, 1, 8},
    IrType{"i8", "I8", DType::i8, 1, 1},             IrType{"i16", "I16", DType::i16, 1, 2},
    IrType{"i32", "I32", DType::i32, 1, 4},          IrType{"i64", "I64", DType::i64, 1, 8},
    IrType{"u8", "U8", DType::u8, 1, 1},             IrType{"u16", "U16", DType::u16, 1, 2},
    IrType{"u32", "U32", DType::u32, 1, 4},          IrType{"u64", "U64", DType::u64, 1, 8},
    IrType{"i4", "I4", DType::i4, 2, 1},             IrType{"u4", "U4", DType::u4, 2, 1},
    IrType{"boolean", "BOOL", DType::boolean, 1, 1}, IrType{"f8e4m3", "F8E4M3", DType::f8e4m3, 1, 1},
    IrType{"f8e5m2", "F8E5M2", DType::f8e5m2, 1, 1}, IrType{"f8e8m0", "F8E8M0", DType::other, 1, 1},
    IrType{"nf4", "NF4", DType::other, 2, 1},        IrType{"f4e2m1", "F4E2M1", DType::other, 2, 1},
    IrType{"u1", "BIN", DType::other, 8, 1},         IrType{"u2", "U2", DType::other, 4, 1},
    IrType{"u3", "U3", DType::other, 8, 3},          IrType{"u6", "U6", DType::other, 4, 3},
    IrType{"string", "STRING", DType::other, 1, 0},
};

}  // namespace

const IrType* ir_type(std::string_view name) noexcept {
  const auto* found = std::ranges::find(kTypes, name, &IrType::name);
  return found == kTypes.end() ? nullptr : found;
}

const IrType& ir_type(DType dtype) {
  const auto* found = std::ranges::find(kTypes, dtype, &IrType::dtype);
  if (dtype == DType::other || found == kTypes.end()) {
    fail(ErrorCode::internal, "openvino", fmt::format("no element type for {}", name_of(dtype)));
  }
  return *found;
}

std::uint64_t ir_size_bytes(const IrType& type, std::uint64_t count, std::string_view where) {
  const std::uint64_t groups = ceil_div(count, std::uint64_t{type.group_elements});
  return checked_multiply(groups, std::uint64_t{type.group_bytes}, where);
}

}  // namespace weightmill
