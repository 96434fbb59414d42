#pragma once

#include <concepts>
#include <cstdint>

namespace weightmill {

/// a / b rounded up. Requires b > 0.
template <std::unsigned_integral T>
constexpr T ceil_div(T a, T b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// The smallest multiple of b that is >= a. Requires b > 0 and that it fits T.
template <std::unsigned_integral T>
constexpr T ceil_to(T a, T b) {
  return ceil_div(a, b) * b;
}

/// The smallest number of bits n with 2^n >= count: how wide an index into `count` things is. 0 for count <= 1.
constexpr unsigned index_bits(std::uint64_t count) {
  unsigned n = 0;
  while (n < 64 && (std::uint64_t{1} << n) < count) ++n;
  return n;
}

}  // namespace weightmill
