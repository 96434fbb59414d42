#pragma once

#include <concepts>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "error.h"

namespace weightmill {

/// `value` as To, where it fits. Throws: bad_request if it does not (names `where`, the value and the limits).
template <std::integral To, std::integral From>
constexpr To narrow(From value, std::string_view where) {
  if (!std::in_range<To>(value)) {
    fail(ErrorCode::bad_request, where,
         fmt::format("{} is outside {}..{}", value, std::numeric_limits<To>::min(), std::numeric_limits<To>::max()));
  }
  return static_cast<To>(value);
}

/// a * b for sizes that come from a file. Throws: bad_file if the product overflows (names `where`).
template <std::unsigned_integral T>
constexpr T checked_multiply(T a, T b, std::string_view where) {
  T product{};
  if (__builtin_mul_overflow(a, b, &product)) fail(ErrorCode::bad_file, where, fmt::format("{} x {} is too large", a, b));
  return product;
}

}  // namespace weightmill
