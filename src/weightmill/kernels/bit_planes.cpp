#include "bit_planes.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "bit_appender.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bit_planes.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace weightmill {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
QuotientBits quotients(std::span<const std::uint16_t> values, unsigned divisor, bool truncated,
                       const QuotientPlanes& planes) {
  return write_quotients_scalar(values, divisor, truncated, planes);
}
void low_bits(std::span<const std::uint16_t> values, unsigned width, std::uint8_t* out) {
  write_low_bits_scalar(values, width, out);
}
std::uint16_t join_fields(std::span<std::uint16_t> values, unsigned width, const std::uint8_t* bits) {
  return join_low_bits_scalar(values, width, bits);
}
#else

namespace hn = hwy::HWY_NAMESPACE;

using D16 = hn::ScalableTag<std::uint16_t>;
using D32 = hn::Repartition<std::uint32_t, D16>;
using D64 = hn::Repartition<std::uint64_t, D16>;
using V16 = hn::Vec<D16>;
using V64 = hn::Vec<D64>;

/// Bit strings with their lengths, one in each lane.
template <class V>
struct Strings {
  V bits;
  V length;
};

/// Joins each two neighbours, the lower lane first.
HWY_INLINE Strings<hn::Vec<D32>> join(V16 bits16, V16 length16) {
  const D32 d;
  const auto bits = hn::BitCast(d, bits16);
  const auto length = hn::BitCast(d, length16);
  const auto low = hn::Set(d, 0xffff);
  const auto first_length = hn::And(length, low);
  return {hn::Or(hn::And(bits, low), hn::Shl(hn::ShiftRight<16>(bits), first_length)),
          hn::Add(first_length, hn::ShiftRight<16>(length))};
}
HWY_INLINE Strings<V64> join(const Strings<hn::Vec<D32>>& pairs) {
  const D64 d;
  const auto bits = hn::BitCast(d, pairs.bits);
  const auto length = hn::BitCast(d, pairs.length);
  const auto low = hn::Set(d, 0xffffffffu);
  const auto first_length = hn::And(length, low);
  return {hn::Or(hn::And(bits, low), hn::Shl(hn::ShiftRight<32>(bits), first_length)),
          hn::Add(first_length, hn::ShiftRight<32>(length))};
}
HWY_INLINE Strings<V64> join_four(V16 bits, V16 length) { return join(join(bits, length)); }

/// 1 << exponent in 16 bits; exponents up to 15.
HWY_INLINE V16 power_of_two(V16 exponent) {
  alignas(16) static constexpr std::array<std::uint8_t, 16> kPowers{1, 2, 4, 8, 16, 32, 64, 128};
  const D16 d;
  const hn::Repartition<std::uint8_t, D16> bytes;
  // The high byte looks up exponent - 8, and what is not 0..7 finds a zero.
  const auto both = hn::Xor(hn::Or(exponent, hn::ShiftLeft<8>(exponent)), hn::Set(d, 0x0800));
  return hn::BitCast(d, hn::TableLookupBytes(hn::LoadDup128(bytes, kPowers.data()), hn::BitCast(bytes, both)));
}

/// Four values' strings in each 64-bit lane.
struct QuotientStrings {
  Strings<V64> position, last, continuation;
};

HWY_INLINE QuotientStrings plain_strings(V16 quotient) {
  const D16 d;
  const auto one = hn::Set(d, 1);
  const auto twos = hn::ShiftRight<1>(quotient);
  const auto odd = hn::And(quotient, one);
  const auto end = power_of_two(twos);
  const auto before_end = hn::Sub(end, one);
  const auto odd_end = hn::And(end, hn::Sub(hn::Zero(d), odd));
  const auto length = hn::Add(twos, one);
  return {join_four(hn::Or(before_end, odd_end), length), join_four(end, length),
          join_four(before_end, hn::Add(twos, odd))};
}

HWY_INLINE QuotientStrings truncated_strings(V16 quotient) {
  const D16 d;
  const auto one = hn::Set(d, 1);
  const auto goes_on = hn::Min(quotient, one);
  return {join_four(goes_on, one), join_four(one, one), join_four(hn::ShiftRight<1>(quotient), goes_on)};
}

HWY_INLINE void append_all(const Strings<V64>& strings, BitAppender& out) {
  const D64 d;
  alignas(64) std::array<std::uint64_t, 8> bits, length;
  hn::Store(strings.bits, d, bits.data());
  hn::Store(strings.length, d, length.data());
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) out.append(bits[i], static_cast<unsigned>(length[i]));
}

/// Clears the rest of the byte and the next four.
HWY_INLINE void clear_behind(std::uint8_t* bits, std::size_t n_bits) {
  bits[n_bits / 8] = static_cast<std::uint8_t>(bits[n_bits / 8] & ((1u << n_bits % 8) - 1));
  std::fill_n(bits + n_bits / 8 + 1, 4, std::uint8_t{0});
}

template <bool kTruncated>
HWY_INLINE QuotientBits quotients_of(std::span<const std::uint16_t> values, unsigned divisor,
                                     const QuotientPlanes& planes) {
  const D16 d;
  BitAppender position(planes.position), last(planes.last), continuation(planes.continuation);
  for (std::size_t i = 0; i < values.size(); i += hn::Lanes(d)) {
    const std::size_t n = std::min(hn::Lanes(d), values.size() - i);
    alignas(64) std::array<std::uint16_t, 32> padded{};
    const std::uint16_t* from = values.data() + i;
    if (n < hn::Lanes(d)) from = std::copy_n(from, n, padded.data()) - n;
    const auto quotient = hn::ShiftRightSame(hn::LoadU(d, from), static_cast<int>(divisor));
    const QuotientStrings strings = kTruncated ? truncated_strings(quotient) : plain_strings(quotient);
    append_all(strings.position, position);
    append_all(strings.last, last);
    append_all(strings.continuation, continuation);
  }
  // Each value that padded the last vector was a zero: one position, which is its last.
  const std::size_t n_padding = (hn::Lanes(d) - values.size() % hn::Lanes(d)) % hn::Lanes(d);
  position.flush();
  last.flush();
  continuation.flush();
  const std::size_t n_positions = position.size_bits() - n_padding;
  clear_behind(planes.last, n_positions);
  return {n_positions, continuation.size_bits()};
}

QuotientBits quotients(std::span<const std::uint16_t> values, unsigned divisor, bool truncated,
                       const QuotientPlanes& planes) {
  return truncated ? quotients_of<true>(values, divisor, planes) : quotients_of<false>(values, divisor, planes);
}

void low_bits(std::span<const std::uint16_t> values, unsigned width, std::uint8_t* out) {
  const D16 d;
  const auto mask = hn::Set(d, static_cast<std::uint16_t>((1u << width) - 1));
  const auto length = hn::Set(d, static_cast<std::uint16_t>(width));
  BitAppender bits(out);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= values.size(); i += hn::Lanes(d)) {
    append_all(join_four(hn::And(hn::LoadU(d, values.data() + i), mask), length), bits);
  }
  for (; i < values.size(); ++i) bits.append(values[i] & ((1u << width) - 1), width);
  bits.flush();
}

/// How eight fields of `width` bits, which take `width` bytes, come into eight lanes.
struct FieldLayout {
  explicit FieldLayout(unsigned width) {
    for (unsigned i = 0; i < 8; ++i) {
      bytes[2 * i] = static_cast<std::uint8_t>(i * width / 8);
      bytes[2 * i + 1] = static_cast<std::uint8_t>(i * width / 8 + 1);
      factor[i] = static_cast<std::uint16_t>(1u << (7 - i * width % 8));  // moves the field up to bit 7
    }
  }
  alignas(16) std::array<std::uint8_t, 16> bytes;
  alignas(16) std::array<std::uint16_t, 8> factor;
};

std::uint16_t join_fields(std::span<std::uint16_t> values, unsigned width, const std::uint8_t* bits) {
  const hn::FixedTag<std::uint16_t, 8> d;
  const hn::FixedTag<std::uint8_t, 16> d8;
  const FieldLayout layout(width);
  const auto bytes = hn::Load(d8, layout.bytes.data());
  const auto factor = hn::Load(d, layout.factor.data());
  const auto mask = hn::Set(d, static_cast<std::uint16_t>((1u << width) - 1));
  auto largest = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 8 <= values.size(); i += 8, bits += width) {
    const auto fields = hn::Mul(hn::BitCast(d, hn::TableLookupBytes(hn::LoadU(d8, bits), bytes)), factor);
    const auto low = hn::And(hn::ShiftRight<7>(fields), mask);
    const auto high = hn::ShiftLeftSame(hn::LoadU(d, values.data() + i), static_cast<int>(width));
    const auto joined = hn::Or(high, low);
    largest = hn::Max(largest, joined);
    hn::StoreU(joined, d, values.data() + i);
  }
  alignas(16) std::array<std::uint16_t, 8> largest_of;
  hn::Store(largest, d, largest_of.data());
  return std::max(*std::max_element(largest_of.begin(), largest_of.end()),
                  join_low_bits_scalar(values.subspan(i), width, bits));
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weightmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weightmill {

QuotientBits write_quotients_scalar(std::span<const std::uint16_t> values, unsigned divisor, bool truncated,
                                    const QuotientPlanes& planes) noexcept {
  BitAppender position(planes.position), last(planes.last), continuation(planes.continuation);
  const auto ones = [](unsigned width) { return (std::uint64_t{1} << width) - 1; };
  for (const std::uint16_t value : values) {
    const unsigned quotient = unsigned{value} >> divisor;
    const unsigned twos = quotient / 2;  // positions that add 2
    const unsigned odd = quotient % 2;
    const unsigned before_last = truncated ? 0 : twos;
    const std::uint64_t goes_on = truncated ? std::min(quotient, 1u) : odd;
    position.append(ones(before_last) | goes_on << before_last, before_last + 1);
    last.append(std::uint64_t{1} << before_last, before_last + 1);
    continuation.append(ones(twos), twos + odd);
  }
  position.flush();
  last.flush();
  continuation.flush();
  return {position.size_bits(), continuation.size_bits()};
}

void write_low_bits_scalar(std::span<const std::uint16_t> values, unsigned width, std::uint8_t* out) noexcept {
  BitAppender bits(out);
  for (const std::uint16_t value : values) bits.append(value & ((1u << width) - 1), width);
  bits.flush();
}

std::uint16_t join_low_bits_scalar(std::span<std::uint16_t> values, unsigned width, const std::uint8_t* bits) noexcept {
  std::uint16_t largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint64_t word;
    std::memcpy(&word, bits + i * width / 8, sizeof word);
    const auto field = static_cast<unsigned>(word >> (i * width % 8)) & ((1u << width) - 1);
    values[i] = static_cast<std::uint16_t>(unsigned{values[i]} << width | field);
    largest = std::max(largest, values[i]);
  }
  return largest;
}

HWY_EXPORT(quotients);
HWY_EXPORT(low_bits);
HWY_EXPORT(join_fields);

QuotientBits write_quotients(std::span<const std::uint16_t> values, unsigned divisor, bool truncated,
                             const QuotientPlanes& planes) noexcept {
  assert(divisor < 16);
  return HWY_DYNAMIC_DISPATCH(quotients)(values, divisor, truncated, planes);
}

void write_low_bits(std::span<const std::uint16_t> values, unsigned width, std::uint8_t* out) noexcept {
  assert(width <= 9);
  HWY_DYNAMIC_DISPATCH(low_bits)(values, width, out);
}

std::uint16_t join_low_bits(std::span<std::uint16_t> values, unsigned width, const std::uint8_t* bits) noexcept {
  assert(width <= 9);
  return HWY_DYNAMIC_DISPATCH(join_fields)(values, width, bits);
}

}  // namespace weightmill
#endif
