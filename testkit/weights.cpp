#include "testkit/weights.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "testkit/random.h"

namespace weightmill::testkit {
namespace {

using Weights = std::vector<std::int16_t>;
using Kind = void (*)(Random&, std::size_t, Weights&);

template <class T, std::size_t N>
T one_of(Random& random, const std::array<T, N>& choices) {
  return choices[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(N) - 1))];
}

std::int16_t rounded(double value) { return static_cast<std::int16_t>(std::lround(std::clamp(value, -255.0, 255.0))); }

double laplace(Random& random, double scale) {
  const double magnitude = -scale * std::log(1.0 - random.unit());
  return random.chance(0.5) ? magnitude : -magnitude;
}

void add_normal(Random& random, std::size_t n, Weights& out) {
  const double deviation = one_of(random, std::array{0.5, 2.0, 5.0, 12.0, 25.0, 45.0, 90.0});
  const double centre = random.chance(0.3) ? static_cast<double>(random.integer(-200, 200)) : 0.0;
  while (n-- > 0) out.push_back(rounded(centre + deviation * random.normal()));
}

void add_laplace(Random& random, std::size_t n, Weights& out) {
  const double scale = one_of(random, std::array{0.5, 2.0, 5.0, 12.0, 25.0, 60.0});
  const bool has_zeros = random.chance(0.7);
  while (n-- > 0) {
    const std::int16_t weight = rounded(laplace(random, scale));
    out.push_back(weight == 0 && !has_zeros ? std::int16_t{1} : weight);
  }
}

void add_uniform(Random& random, std::size_t n, Weights& out) {
  const std::int64_t low = random.integer(-255, 255);
  const std::int64_t high = random.integer(low, 255);
  while (n-- > 0) out.push_back(static_cast<std::int16_t>(random.integer(low, high)));
}

void add_sparse(Random& random, std::size_t n, Weights& out) {
  const double density = one_of(random, std::array{0.02, 0.1, 0.2, 0.3, 0.5});
  const double deviation = one_of(random, std::array{1.0, 5.0, 25.0, 90.0});
  while (n-- > 0) out.push_back(random.chance(density) ? rounded(deviation * random.normal()) : std::int16_t{0});
}

void add_few_values(Random& random, std::size_t n, Weights& out) {
  Weights values(one_of(random, std::array<std::size_t, 14>{1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 34, 40}));
  for (auto& value : values) value = static_cast<std::int16_t>(random.integer(-255, 255));
  while (n-- > 0) out.push_back(values[static_cast<std::size_t>(random.integer(0, std::ssize(values) - 1))]);
}

void add_runs(Random& random, std::size_t n, Weights& out) {
  const std::int64_t longest = one_of(random, std::array<std::int64_t, 4>{2, 20, 200, 2000});
  const double zeros = random.unit();
  while (n > 0) {
    const auto length = std::min(n, static_cast<std::size_t>(random.integer(1, longest)));
    out.insert(out.end(), length, random.chance(zeros) ? std::int16_t{0} : rounded(laplace(random, 20)));
    n -= length;
  }
}

void add_ramp(Random& random, std::size_t n, Weights& out) {
  const std::int64_t step = random.integer(1, 8);
  for (std::int64_t i = 0; n-- > 0; ++i) out.push_back(static_cast<std::int16_t>(i * step % 511 - 255));
}

void add_drift(Random& random, std::size_t n, Weights& out) {
  const double last = one_of(random, std::array{5.0, 60.0, 200.0});
  for (std::size_t i = 0; i < n; ++i) {
    const double way = static_cast<double>(i) / static_cast<double>(n);
    out.push_back(rounded(0.6 * std::pow(last / 0.6, way) * random.normal()));
  }
}

void add_zeros(Random&, std::size_t n, Weights& out) { out.insert(out.end(), n, std::int16_t{0}); }

constexpr std::array<Kind, 9> kKinds{add_normal, add_laplace, add_uniform, add_sparse, add_few_values,
                                     add_runs,   add_ramp,    add_drift,   add_zeros};

}  // namespace

std::vector<std::int16_t> random_weights(std::uint64_t seed, std::size_t max_size) {
  Random random(seed);
  const bool is_small = random.chance(0.3);
  const auto size =
      random.integer(1, static_cast<std::int64_t>(is_small ? std::min<std::size_t>(40, max_size) : max_size));
  const std::int64_t n_pieces = random.integer(1, 4);
  Weights weights;
  while (std::ssize(weights) < size)
    one_of(random, kKinds)(random, static_cast<std::size_t>(size / n_pieces + 1), weights);
  weights.resize(static_cast<std::size_t>(size));
  return weights;
}

std::vector<std::int16_t> normal_weights(std::uint64_t seed, std::size_t size, double deviation, double density) {
  Random random(seed);
  Weights weights(size);
  for (auto& weight : weights) {
    const double value = std::clamp(deviation * random.normal(), -128.0, 127.0);
    weight = density >= 1.0 || random.chance(density) ? rounded(value) : std::int16_t{0};
  }
  return weights;
}

}  // namespace weightmill::testkit
