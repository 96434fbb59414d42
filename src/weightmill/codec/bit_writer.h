#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace weightmill::mlw {

/// Collects fields of bits into bytes: stream bit p is bit p % 8 of byte p / 8, and a field goes least significant bit
/// first.  [docs/weight-stream.md §1]
class BitWriter {
 public:
  /// One put() goes through a 64-bit accumulator in which up to 7 bits may still be waiting; whole bytes, so that it is
  /// never full and may be shifted by what was stored.
  static constexpr unsigned kMaxFieldBits = 64 - 8;

  BitWriter() { reserve(); }
  BitWriter(BitWriter&&) noexcept = default;
  BitWriter& operator=(BitWriter&&) noexcept = default;

  /// Appends the low `width` bits of `value`.
  /// Requires: width <= kMaxFieldBits, and no bit of `value` at or above `width`.
  void put(std::uint64_t value, unsigned width) {
    assert(width <= kMaxFieldBits && (value >> width) == 0);
    waiting_ |= value << n_waiting_;
    store(waiting_);
    n_waiting_ += width;
    waiting_ >>= n_waiting_ & ~7u;
    size_bytes_ += n_waiting_ / 8;
    n_waiting_ %= 8;
    if (size_bytes_ + kSlackBytes > bytes_.size()) reserve();
  }

  /// Appends `count` one bits.
  void put_ones(std::uint64_t count) {
    for (; count > kMaxFieldBits; count -= kMaxFieldBits) put(ones(kMaxFieldBits), kMaxFieldBits);
    put(ones(static_cast<unsigned>(count)), static_cast<unsigned>(count));
  }

  std::uint64_t size_bits() const noexcept { return std::uint64_t{size_bytes_} * 8 + n_waiting_; }

  /// The bits from `position` on, first bit lowest, zeros behind the end; at least kMaxFieldBits of them count.
  /// Requires: position <= size_bits() + kMaxFieldBits.
  std::uint64_t bits_from(std::uint64_t position) const noexcept {
    assert(position <= size_bits() + kMaxFieldBits);
    std::uint64_t word;
    std::memcpy(&word, bytes_.data() + position / 8, sizeof word);
    return word >> (position % 8);
  }

  /// Forgets what was written and keeps the memory.
  void clear() noexcept {
    waiting_ = 0;
    n_waiting_ = 0;
    size_bytes_ = 0;
    store(0);
  }

  /// Gives the bytes away; bits beyond the last one of a byte are 0.
  std::vector<std::uint8_t> take() && {
    bytes_.resize(size_bytes_ + (n_waiting_ != 0 ? 1 : 0));
    return std::move(bytes_);
  }

 private:
  /// What put() and bits_from() may touch behind the last whole byte.
  static constexpr std::size_t kSlackBytes = 4 * sizeof(std::uint64_t);

  static_assert(std::endian::native == std::endian::little, "store() and bits_from() copy words as they lie in memory");

  void store(std::uint64_t word) noexcept {
    std::memcpy(bytes_.data() + size_bytes_, &word, sizeof word);
    constexpr std::uint64_t zero = 0;
    std::memcpy(bytes_.data() + size_bytes_ + sizeof word, &zero, sizeof zero);
  }
  void reserve() { bytes_.resize(2 * size_bytes_ + 256); }

  static constexpr std::uint64_t ones(unsigned width) noexcept { return (std::uint64_t{1} << width) - 1; }

  std::vector<std::uint8_t> bytes_;
  std::size_t size_bytes_ = 0;
  std::uint64_t waiting_ = 0;
  unsigned n_waiting_ = 0;
};

/// Counts what a BitWriter would hold, so that a cost comes from the very code that writes.
class BitCounter {
 public:
  void put(std::uint64_t, unsigned width) noexcept { size_bits_ += width; }
  void put_ones(std::uint64_t count) noexcept { size_bits_ += count; }
  std::uint64_t size_bits() const noexcept { return size_bits_; }

 private:
  std::uint64_t size_bits_ = 0;
};

}  // namespace weightmill::mlw
