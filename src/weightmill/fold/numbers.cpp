#include "numbers.h"

#include <bit>
#include <cassert>
#include <cstring>

#include <weightmill/base/half.h>
#include <weightmill/kernels/fake_quantize.h>

namespace weightmill {
namespace {

template <class T>
void load_as(const std::uint8_t* bytes, std::span<float> out) noexcept {
  for (std::size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    out[i] = static_cast<float>(value);
  }
}

/// The lower half of a byte first. `flip` turns 0..15 into -8..7 (xor 8, minus 8).
void load_nibbles(const std::uint8_t* bytes, std::uint64_t first, int flip, std::span<float> out) noexcept {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t at = first + i;
    const int nibble = bytes[at / 2] >> (at % 2 * 4) & 15;
    out[i] = static_cast<float>((nibble ^ flip) - flip);
  }
}

void load_booleans(const std::uint8_t* bytes, std::span<float> out) noexcept {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = bytes[i] != 0 ? 1.0f : 0.0f;
}

std::uint16_t to_bf16_cut_or_add(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((bits + ((bits & 0x10000u) >> 1)) >> 16);
}

std::uint16_t half_bits(const Precision& precision, float x) noexcept {
  if (precision.type == DType::f16) return to_f16(x);
  return precision.bf16_cut_or_add ? to_bf16_cut_or_add(x) : to_bf16(x);
}

}  // namespace

bool can_load_floats(DType dtype) noexcept {
  switch (dtype) {
    case DType::f16: case DType::bf16: case DType::f32: case DType::f64:
    case DType::i4: case DType::i8: case DType::i16: case DType::i32: case DType::i64:
    case DType::u4: case DType::u8: case DType::u16: case DType::u32: case DType::u64:
    case DType::boolean: return true;
    default: return false;
  }
}

void load_floats(const Numbers& numbers, std::uint64_t first, std::span<float> out) noexcept {
  const std::uint8_t* bytes = numbers.bytes.data() + first * size_bits(numbers.dtype) / 8;
  switch (numbers.dtype) {
    case DType::f32: std::memcpy(out.data(), bytes, out.size_bytes()); return;
    case DType::f16: return widen_f16(bytes, out);
    case DType::bf16: return widen_bf16(bytes, out);
    case DType::f64: return load_as<double>(bytes, out);
    case DType::i8: return load_as<std::int8_t>(bytes, out);
    case DType::i16: return load_as<std::int16_t>(bytes, out);
    case DType::i32: return load_as<std::int32_t>(bytes, out);
    case DType::i64: return load_as<std::int64_t>(bytes, out);
    case DType::u8: return load_as<std::uint8_t>(bytes, out);
    case DType::u16: return load_as<std::uint16_t>(bytes, out);
    case DType::u32: return load_as<std::uint32_t>(bytes, out);
    case DType::u64: return load_as<std::uint64_t>(bytes, out);
    case DType::i4: return load_nibbles(numbers.bytes.data(), first, 8, out);
    case DType::u4: return load_nibbles(numbers.bytes.data(), first, 0, out);
    case DType::boolean: return load_booleans(bytes, out);
    default: assert(false && "can_load_floats() said no");
  }
}

float number_at(const Numbers& numbers, std::uint64_t index) noexcept {
  float value = 0;
  load_floats(numbers, index, {&value, 1});
  return value;
}

float Precision::round_to_half(float x) const noexcept {
  return type == DType::f16 ? from_f16(to_f16(x)) : from_bf16(half_bits(*this, x));
}

double Precision::unit_roundoff() const noexcept {
  return type == DType::f32 ? 0x1p-24 : type == DType::f16 ? 0x1p-11 : 0x1p-8;
}

void Precision::store(float x, std::uint8_t* out) const noexcept {
  if (type == DType::f32) {
    std::memcpy(out, &x, sizeof x);
    return;
  }
  const std::uint16_t bits = half_bits(*this, x);
  std::memcpy(out, &bits, sizeof bits);
}

}  // namespace weightmill
