#include "testkit/random.h"

#include <cmath>
#include <numbers>
#include <numeric>

namespace weightmill::testkit {

std::uint64_t Random::bits() {
  state_ += 0x9e3779b97f4a7c15u;  // SplitMix64 (Steele, Lea, Flood 2014)
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::int64_t Random::integer(std::int64_t low, std::int64_t high) {
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
  const std::uint64_t offset = range == 0 ? bits() : bits() % range;  // the bias is below 2^-50 for ranges used in tests
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
}

double Random::unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

double Random::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - unit()));
  return radius * std::cos(2.0 * std::numbers::pi * unit());
}

std::vector<std::uint64_t> seeds(std::uint64_t count) {
  std::vector<std::uint64_t> result(count);
  std::iota(result.begin(), result.end(), std::uint64_t{1});
  return result;
}

}  // namespace weightmill::testkit
