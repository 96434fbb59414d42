#include "step_meter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "testkit/random.h"

namespace weightmill {
namespace {

using testkit::Random;

/// Codes of a tensor, as they are stored and as they are defined, with output limits of some layout.
struct Sample {
  Shape shape, limits_shape;
  std::vector<float> low, high;
  std::vector<std::uint8_t> defined, stored;
  FakeQuantize operation;
  StepMeter::Codes codes;

  explicit Sample(Random& random);
  /// By the definition, element by element.
  double worst() const;

 private:
  float limit(const std::vector<float>& limits, std::size_t element) const {
    return limits[BroadcastIndex(limits_shape, shape).at(element)];
  }
};

Numbers view(const std::vector<float>& values, const Shape& shape) {
  return {{reinterpret_cast<const std::uint8_t*>(values.data()), 4 * values.size()}, DType::f32, shape, values.size()};
}

Sample::Sample(Random& random) {
  shape = {random.integer(1, 6), random.integer(1, 3), random.integer(1, 700)};
  limits_shape = shape;
  for (auto& extent : limits_shape) extent = random.chance(0.6) ? 1 : extent;
  std::size_t n = 1, n_limits = 1;
  for (const auto extent : shape) n *= static_cast<std::size_t>(extent);
  for (const auto extent : limits_shape) n_limits *= static_cast<std::size_t>(extent);
  codes.levels = static_cast<std::int32_t>(random.integer(3, 256));
  codes.lowest = random.chance(0.5) ? 0 : -codes.levels / 2;
  codes.zero_point = random.chance(0.5) ? ZeroPoint::kept : ZeroPoint::none;
  codes.shifted = random.chance(0.2);
  operation.levels = codes.levels;
  operation.type = random.chance(0.5) ? DType::f32 : random.chance(0.5) ? DType::f16 : DType::bf16;
  for (std::size_t i = 0; i < n_limits; ++i) {
    const double span = std::ldexp(1 + random.unit(), static_cast<int>(random.integer(-20, 8)));
    low.push_back(static_cast<float>(random.chance(0.9) ? -span * random.unit() : 0));
    high.push_back(static_cast<float>(random.chance(0.95) ? span : low.back()));
  }
  operation.output_low = view(low, limits_shape), operation.output_high = view(high, limits_shape);
  const double others = random.chance(0.5) ? 0 : random.unit();
  for (std::size_t i = 0; i < n; ++i) {
    defined.push_back(static_cast<std::uint8_t>(codes.lowest + random.integer(0, codes.levels - 1)));
    stored.push_back(random.chance(others) ? static_cast<std::uint8_t>(random.integer(0, 255)) : defined.back());
  }
}

double Sample::worst() const {
  const ScaleRule rule(FoldSemantics::strict, operation.type, codes.levels, codes.lowest);
  const Precision grid = rule.stored();
  const auto number = [&](std::uint8_t code) { return codes.lowest < 0 ? static_cast<std::int8_t>(code) : code; };
  double worst = 0;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const double from = limit(low, i), to = limit(high, i), step = (to - from) / (codes.levels - 1);
    const ScaleAndZero own = rule(limit(low, i), limit(high, i));
    const float zero = codes.zero_point == ZeroPoint::kept ? own.zero_point : 0;
    const double value = grid.round(grid.round(static_cast<float>(number(stored[i])) - zero) * own.scale);
    double error = std::abs(value - (from + step * (number(defined[i]) - codes.lowest))) / std::abs(step);
    if (step == 0) error = from == 0 ? 0 : std::numeric_limits<double>::infinity();
    worst = std::max(worst, error);
  }
  return worst;
}

TEST(StepMeter, FindsTheLargestErrorThatOccurs) {
  for (const std::uint64_t seed : testkit::seeds(600)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Sample sample(random);
    const ScaleRule rule(FoldSemantics::strict, sample.operation.type, sample.codes.levels, sample.codes.lowest);
    const OutputScales scales(sample.operation, rule, sample.limits_shape);
    const StepMeter meter(scales, sample.limits_shape, sample.shape, sample.codes);
    StepError error;
    for (std::size_t first = 0; first < sample.stored.size();) {
      const auto n = std::min(sample.stored.size() - first, static_cast<std::size_t>(random.integer(1, 2000)));
      meter.add(first, std::span(sample.stored).subspan(first, n), std::span(sample.defined).subspan(first, n), error);
      first += n;
    }
    EXPECT_EQ(error.max_steps, sample.worst());
  }
}

TEST(StepMeter, CodesThatDoNotOccurDoNotCount) {
  const std::vector<float> low{-1}, high{0.7f};
  FakeQuantize operation;
  operation.levels = 255;
  operation.output_low = view(low, {}), operation.output_high = view(high, {});
  const OutputScales scales(operation, ScaleRule(FoldSemantics::strict, DType::f32, 255, -127), {});
  const StepMeter meter(scales, {}, {1000}, {.lowest = -127, .levels = 255, .zero_point = ZeroPoint::kept});
  std::vector<std::uint8_t> all(1000), one(1000, 3);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i % 255 + 129);
  StepError of_all, of_one;
  meter.add(0, all, all, of_all);
  meter.add(0, one, one, of_one);
  EXPECT_LT(of_one.max_steps, of_all.max_steps);
  EXPECT_LE(of_all.max_steps, of_all.bound_steps);
}

}  // namespace
}  // namespace weightmill
