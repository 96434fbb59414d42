#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weightmill {

/// Appends fields of up to 64 bits at a pointer, in registers but for one store of a word each. Finish with flush().
class BitAppender {
 public:
  explicit BitAppender(std::uint8_t* out) noexcept : begin_(out), out_(out) {}

  __attribute__((always_inline)) void append(std::uint64_t value, unsigned width) noexcept {
    constexpr unsigned kAtOnce = 56;  // beside up to 7 bits that wait
    if (width > kAtOnce) [[unlikely]] {
      append_short(value & 0xffffffffu, 32);
      append_short(value >> 32, width - 32);
    } else {
      append_short(value, width);
    }
  }

  std::size_t size_bits() const noexcept { return static_cast<std::size_t>(out_ - begin_) * 8 + n_waiting_; }

  /// Writes what waits, and zeros behind it.
  void flush() noexcept {
    store(out_, waiting_);
    store(out_ + sizeof waiting_, 0);
  }

 private:
  static_assert(std::endian::native == std::endian::little, "words are stored as they lie in memory");

  static void store(std::uint8_t* out, std::uint64_t word) noexcept { std::memcpy(out, &word, sizeof word); }

  __attribute__((always_inline)) void append_short(std::uint64_t value, unsigned width) noexcept {
    waiting_ |= value << n_waiting_;
    store(out_, waiting_);
    n_waiting_ += width;
    waiting_ >>= n_waiting_ & ~7u;
    out_ += n_waiting_ / 8;
    n_waiting_ %= 8;
  }

  std::uint8_t* begin_;
  std::uint8_t* out_;
  std::uint64_t waiting_ = 0;
  unsigned n_waiting_ = 0;
};

}  // namespace weightmill
