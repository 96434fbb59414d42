#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace weightmill::mlw {

/// Takes fields of bits out of bytes, the reverse of BitWriter. Never reads outside: what lies behind the end is zero,
/// and whoever takes it finds overrun() true.
class BitReader {
 public:
  static constexpr unsigned kMaxFieldBits = 64 - 8;

  explicit BitReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  BitReader(BitReader&&) noexcept = default;
  BitReader& operator=(BitReader&&) noexcept = default;

  /// The next bits, first bit lowest; at least kMaxFieldBits of them count.
  std::uint64_t peek() const noexcept { return word_at(position_bits_ / 8) >> (position_bits_ % 8); }

  /// The next `width` bits as a number.  Requires: width <= kMaxFieldBits.
  std::uint64_t take(unsigned width) noexcept {
    assert(width <= kMaxFieldBits);
    const std::uint64_t field = peek() & ((std::uint64_t{1} << width) - 1);
    position_bits_ += width;
    return field;
  }

  void skip(std::uint64_t n_bits) noexcept { position_bits_ += n_bits; }
  void skip_to_byte() noexcept { position_bits_ = (position_bits_ + 7) / 8 * 8; }
  std::uint64_t position_bits() const noexcept { return position_bits_; }
  bool at_end() const noexcept { return position_bits_ == bytes_.size() * std::uint64_t{8}; }
  bool overrun() const noexcept { return position_bits_ > bytes_.size() * std::uint64_t{8}; }

 private:
  static_assert(std::endian::native == std::endian::little, "word_at() copies words as they lie in memory");

  std::uint64_t word_at(std::uint64_t byte) const noexcept {
    std::uint64_t word = 0;
    if (byte + sizeof word <= bytes_.size()) {
      std::memcpy(&word, bytes_.data() + byte, sizeof word);
    } else if (byte < bytes_.size()) {
      std::memcpy(&word, bytes_.data() + byte, bytes_.size() - byte);
    }
    return word;
  }

  std::span<const std::uint8_t> bytes_;
  std::uint64_t position_bits_ = 0;
};

}  // namespace weightmill::mlw
