#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace weightmill::fuzz {

/// Values from a fuzzer's bytes, one after the other.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  /// The next value; zero bytes where the input has ended.
  template <class T>
  T take() {
    T value{};
    const std::size_t n = std::min(sizeof(T), bytes_.size());
    if (n > 0) std::memcpy(&value, bytes_.data(), n);
    bytes_ = bytes_.subspan(n);
    return value;
  }
  template <class T>
  std::vector<T> many(std::size_t count) {
    std::vector<T> values(count);
    for (T& value : values) value = take<T>();
    return values;
  }
  bool flag() { return (take<std::uint8_t>() & 1) != 0; }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace weightmill::fuzz
