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

  /// The writer's state while it writes into room it has: small enough to stay in registers.
  class Burst {
   public:
    /// Appends the low `width` bits of `value`.
    /// Requires: width <= kMaxFieldBits, and no bit of `value` at or above `width`.
    void put(std::uint64_t value, unsigned width) noexcept {
      assert(width <= kMaxFieldBits && (value >> width) == 0);
      waiting_ |= value << n_waiting_;
      std::memcpy(out_, &waiting_, sizeof waiting_);
      n_waiting_ += width;
      waiting_ >>= n_waiting_ & ~7u;
      out_ += n_waiting_ / 8;
      n_waiting_ %= 8;
    }

   private:
    friend class BitWriter;
    std::uint8_t* out_ = nullptr;
    std::uint64_t waiting_ = 0;  ///< bits behind the last whole byte
    unsigned n_waiting_ = 0;
  };

  /// `expected_bytes`: room for so many is asked for at once; it costs nothing before it is written to.
  explicit BitWriter(std::size_t expected_bytes = 0) {
    bytes_.reserve(expected_bytes);
    state_.out_ = bytes_.data();
    make_room(0);
  }
  BitWriter(BitWriter&&) noexcept = default;
  BitWriter& operator=(BitWriter&&) noexcept = default;

  /// As Burst::put(); makes room by itself.
  void put(std::uint64_t value, unsigned width) {
    make_room(width);
    state_.put(value, width);
  }

  /// Appends `count` one bits.
  void put_ones(std::uint64_t count) {
    for (; count > kMaxFieldBits; count -= kMaxFieldBits) put(ones(kMaxFieldBits), kMaxFieldBits);
    put(ones(static_cast<unsigned>(count)), static_cast<unsigned>(count));
  }

  /// What is put into the burst, at most `max_bits`, counts once it is handed back to end_burst().
  Burst begin_burst(std::uint64_t max_bits) {
    make_room(max_bits);
    return state_;
  }
  void end_burst(const Burst& burst) noexcept { state_ = burst; }

  std::uint64_t size_bits() const noexcept { return std::uint64_t{size_bytes()} * 8 + state_.n_waiting_; }

  /// Gives the bytes away; bits beyond the last one of a byte are 0.
  std::vector<std::uint8_t> take() && {
    bytes_.resize(size_bytes() + (state_.n_waiting_ != 0 ? 1 : 0));
    return std::move(bytes_);
  }

 private:
  static_assert(std::endian::native == std::endian::little, "words are copied as they lie in memory");

  std::size_t size_bytes() const noexcept { return static_cast<std::size_t>(state_.out_ - bytes_.data()); }

  void make_room(std::uint64_t n_bits) {
    const std::size_t needed = (size_bits() + n_bits) / 8 + sizeof(std::uint64_t);  // a put() stores a whole word
    if (needed <= bytes_.size()) return;
    const std::size_t size = size_bytes();
    constexpr std::size_t kStep = 16384;  // within the room there is: the zeros are still in the cache
    const bool fits = needed + kStep <= bytes_.capacity();
    bytes_.resize(fits ? needed + kStep : needed + needed / 2 + 256);
    state_.out_ = bytes_.data() + size;
  }

  static constexpr std::uint64_t ones(unsigned width) noexcept { return (std::uint64_t{1} << width) - 1; }

  std::vector<std::uint8_t> bytes_;
  Burst state_;
};

/// Counts what a BitWriter would hold, so that a cost comes from the very code that writes.
class BitCounter {
 public:
  void put(std::uint64_t, unsigned width) noexcept { size_bits_ += width; }
  void put_ones(std::uint64_t count) noexcept { size_bits_ += count; }
  BitCounter begin_burst(std::uint64_t) const noexcept { return *this; }
  void end_burst(const BitCounter& burst) noexcept { *this = burst; }
  std::uint64_t size_bits() const noexcept { return size_bits_; }

 private:
  std::uint64_t size_bits_ = 0;
};

}  // namespace weightmill::mlw
