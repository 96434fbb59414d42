#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weightmill {

/// Bits are numbered from the low end of the first byte on. A function here writes whole words: behind its last bit it
/// leaves zeros up to the end of the byte and kBitSlack bytes that are 0 or were not touched; it wants that much room.
inline constexpr std::size_t kBitSlack = 24;

/// Planes of two-plane unary quotients: a position has a bit in `position` and in `last`, and one in `continuation`
/// where its bit in `position` is 1.  [docs/weight-stream.md §5]
struct QuotientPlanes {
  std::uint8_t* position;
  std::uint8_t* last;  ///< 1 where the quotient is complete
  std::uint8_t* continuation;
};
struct QuotientBits {
  std::size_t n_positions;
  std::size_t n_continuations;
};

/// What each plane takes at most for n values, in bytes.
constexpr std::size_t quotient_plane_bytes(std::size_t n_values) noexcept { return 2 * n_values + kBitSlack; }

/// Writes the quotients value >> divisor.  Requires: quotients of at most 31, of at most 2 where they are truncated.
QuotientBits write_quotients(std::span<const std::uint16_t> values, unsigned divisor, bool truncated,
                             const QuotientPlanes& planes) noexcept;

/// Writes the low `width` bits of each value, one behind the other; width <= 9. Takes ceil(n * width / 8) + kBitSlack
/// bytes.
void write_low_bits(std::span<const std::uint16_t> values, unsigned width, std::uint8_t* out) noexcept;

/// The reverse: shifts each value up by `width` bits and fills in the next `width` of `bits`. Returns the largest
/// result, 0 for none.  Requires: results below 2^16; kBitSlack bytes behind the last bit may be read.
std::uint16_t join_low_bits(std::span<std::uint16_t> values, unsigned width, const std::uint8_t* bits) noexcept;

/// The definitions that every SIMD target is held to.
QuotientBits write_quotients_scalar(std::span<const std::uint16_t> values, unsigned divisor, bool truncated,
                                    const QuotientPlanes& planes) noexcept;
void write_low_bits_scalar(std::span<const std::uint16_t> values, unsigned width, std::uint8_t* out) noexcept;
std::uint16_t join_low_bits_scalar(std::span<std::uint16_t> values, unsigned width, const std::uint8_t* bits) noexcept;

}  // namespace weightmill
