#include "step_errors.h"

#include <bit>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "on_each_target.h"
#include "testkit/random.h"

namespace weightmill {
namespace {

using testkit::Random;

struct Case {
  std::size_t columns = 0, stride = 0, n_candidates = 0;
  std::vector<float> x, scale, steps_per_unit, lowest, highest;
  StepGrids grids() const { return {scale, steps_per_unit, lowest, highest, stride, n_candidates}; }
};

/// Ties, weights beyond the codes and negative scales are drawn on purpose.
float random_weight(Random& random, float scale) {
  if (random.chance(0.3)) return (static_cast<float>(random.integer(-9, 9)) + 0.5F) * scale;
  return static_cast<float>(random.normal()) * (random.chance(0.1) ? 1e5F : 3.0F);
}

Case random_case(std::uint64_t seed) {
  Random random(seed);
  Case result;
  result.columns = static_cast<std::size_t>(random.integer(1, 70));
  result.stride = result.columns + static_cast<std::size_t>(random.integer(0, 9));
  result.n_candidates = static_cast<std::size_t>(random.integer(1, 12));
  for (std::size_t i = 0; i < result.stride * result.n_candidates; ++i) {
    const float scale = random.chance(0.3) ? -0.25F : static_cast<float>(std::exp(random.normal()));
    result.scale.push_back(scale);
    result.steps_per_unit.push_back(1 / scale);
    result.lowest.push_back(static_cast<float>(random.integer(-128, 0)));
    result.highest.push_back(static_cast<float>(random.integer(0, 255)));
  }
  const std::size_t n_rows = static_cast<std::size_t>(random.integer(0, 5));
  for (std::size_t i = 0; i < n_rows * result.columns; ++i)
    result.x.push_back(random_weight(random, result.scale[i % result.columns]));
  return result;
}

TEST(StepErrorsKernel, AllTargetsAgreeBitForBit) {
  for (const std::uint64_t seed : testkit::seeds(300)) {
    SCOPED_TRACE(seed);
    const Case c = random_case(seed);
    std::vector<float> want(c.scale.size(), 0.5F);
    scalar::add_squared_errors(c.x, c.columns, c.grids(), want);
    const float want_run = scalar::squared_errors_run(c.x, 0.3F, 1 / 0.3F, -8, 7);
    on_each_target([&] {
      std::vector<float> got(c.scale.size(), 0.5F);
      add_squared_errors(c.x, c.columns, c.grids(), got);
      EXPECT_EQ(got, want);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(squared_errors_run(c.x, 0.3F, 1 / 0.3F, -8, 7)),
                std::bit_cast<std::uint32_t>(want_run));
    });
  }
}

TEST(StepErrorsKernel, RoundsTiesToEvenAndClamps) {
  const std::vector<float> x{0.5F, 1.5F, 9.0F, -9.0F};  // codes 0, 2, 7, -8
  EXPECT_EQ(scalar::squared_errors_run(x, 1, 1, -8, 7), 0.25F + 0.25F + 4 + 1);
}

}  // namespace
}  // namespace weightmill
