#include "code_writer.h"

#include <cstring>
#include <vector>

#include <weightmill/kernels/fake_quantize.h>

#include "zero_point.h"

namespace weightmill {
namespace {

template <class T>
void write_as(std::span<const std::int32_t> codes, std::uint8_t* out) {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const T code = static_cast<T>(codes[i]);
    std::memcpy(out + i * sizeof(T), &code, sizeof(T));
  }
}

template <class T>
void read_as(const std::uint8_t* bytes, std::span<std::int32_t> codes) {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    T code;
    std::memcpy(&code, bytes + i * sizeof(T), sizeof(T));
    codes[i] = static_cast<std::int32_t>(code);
  }
}

}  // namespace

void write_codes(DType type, std::span<const std::int32_t> codes, bool first_high, std::span<std::uint8_t> out) {
  switch (size_bits(type)) {
    case 8: return write_as<std::uint8_t>(codes, out.data());
    case 16: return write_as<std::uint16_t>(codes, out.data());
    case 32: return write_as<std::uint32_t>(codes, out.data());
    default: break;
  }
  std::vector<std::uint8_t> bytes(codes.size());
  write_as<std::uint8_t>(codes, bytes.data());
  pack_nibbles(bytes, first_high, out.data());
}

void read_codes(DType type, std::span<const std::uint8_t> bytes, std::uint64_t first, std::span<std::int32_t> codes) {
  const std::uint8_t* from = bytes.data() + first * size_bits(type) / 8;
  switch (type) {
    case DType::i8: return read_as<std::int8_t>(from, codes);
    case DType::u8: return read_as<std::uint8_t>(from, codes);
    case DType::i16: return read_as<std::int16_t>(from, codes);
    case DType::u16: return read_as<std::uint16_t>(from, codes);
    default: break;
  }
  const std::int32_t flip = type == DType::i4 ? 8 : 0;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::int32_t nibble = bytes[(first + i) / 2] >> ((first + i) % 2 * 4) & 15;
    codes[i] = (nibble ^ flip) - flip;
  }
}

}  // namespace weightmill
