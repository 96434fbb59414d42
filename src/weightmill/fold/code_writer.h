#pragma once

#include <cstdint>
#include <span>

#include <weightmill/model/dtype.h>

namespace weightmill {

/// Packs codes of 4, 8, 16 or 32 bits as little-endian bytes; higher bits are cut off. `first_high`: the first of two
/// 4-bit codes goes to the high nibble. `out` holds code_bytes() of them.
void write_codes(DType type, std::span<const std::int32_t> codes, bool first_high, std::span<std::uint8_t> out);

/// Reads codes [first, first + codes.size()) back, low nibble first.
void read_codes(DType type, std::span<const std::uint8_t> bytes, std::uint64_t first, std::span<std::int32_t> codes);

}  // namespace weightmill
