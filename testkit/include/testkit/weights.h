#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weightmill::testkit {

/// Weights in [-255, 255], at least one and at most `max_size`: one to four pieces, each of a kind of its own (normal,
/// Laplace, uniform, sparse, few values, runs, long zero runs, no zeros, a ramp, zeros), so that every way of coding
/// and the changes between them come up.
std::vector<std::int16_t> random_weights(std::uint64_t seed, std::size_t max_size = 3000);

/// As many weights as wanted, rounded from a normal distribution and clamped to int8; each is kept with `density`, or
/// 0.
std::vector<std::int16_t> normal_weights(std::uint64_t seed, std::size_t size, double deviation, double density = 1.0);

}  // namespace weightmill::testkit
