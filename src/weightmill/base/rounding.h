#pragma once

#include <cmath>
#include <concepts>

namespace weightmill {

/// The named rounding rules. Every floating-point step of the library names one of them; none depends on the
/// processor's rounding mode, which is left at round-to-nearest-even.

/// To the nearest integer, ties to even: 0.5 -> 0, 1.5 -> 2, -0.5 -> -0.
template <std::floating_point T>
inline T round_half_even(T x) {
  return std::nearbyint(x);
}

/// To the nearest integer, ties away from zero: 0.5 -> 1, -0.5 -> -1.
template <std::floating_point T>
inline T round_half_away(T x) {
  return std::round(x);
}

/// To the nearest integer, ties towards plus infinity: 0.5 -> 1, -0.5 -> 0. Evaluated as floor(x + 0.5), in T.
template <std::floating_point T>
inline T round_half_up(T x) {
  return std::floor(x + T{0.5});
}

}  // namespace weightmill
