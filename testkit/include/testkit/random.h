#pragma once

#include <cstdint>
#include <vector>

namespace weightmill::testkit {

/// A small generator whose numbers are the same on every machine and standard library (SplitMix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits();
  /// Uniform in [low, high]; low <= high.
  std::int64_t integer(std::int64_t low, std::int64_t high);
  /// Uniform in [0, 1).
  double unit();
  /// Standard normal (Box-Muller).
  double normal();
  bool chance(double probability) { return unit() < probability; }

 private:
  std::uint64_t state_;
};

/// Seeds 1..count: a failing test prints its seed with SCOPED_TRACE.
std::vector<std::uint64_t> seeds(std::uint64_t count);

}  // namespace weightmill::testkit
