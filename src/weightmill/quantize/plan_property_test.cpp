// What holds for every request, however strange: drawn from a seed, with channels many orders of magnitude apart, dead
// and denormal channels, biases that fit nowhere and output ranges that fit nothing.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <weightmill/base/error.h>
#include <weightmill/verify/plan_invariants.h>

#include "conv_plan.h"
#include "testkit/random.h"

namespace weightmill {
namespace {

using testkit::Random;

struct Request {
  std::vector<float> weight, bias, mean;
  ConvRequest plain;

  /// The request with its spans set, which a copy of this struct would leave on the original.
  ConvRequest view() const {
    ConvRequest request = plain;
    request.weight = weight;
    if (!bias.empty()) request.bias = bias;
    if (!mean.empty()) request.input_mean = mean;
    return request;
  }
  std::size_t n_channels() const {
    return static_cast<std::size_t>(plain.weight_shape.back() * plain.weight_shape.rbegin()[1]);
  }
};

/// A number whose size is spread over `decades` powers of ten around 1.
double spread(Random& random, double decades) { return std::pow(10.0, (random.unit() - 0.5) * decades); }

Shape random_shape(Random& random) {
  Shape shape;
  if (random.chance(0.1)) shape.push_back(random.integer(1, 2));
  for (const std::int64_t most : {3, 3, 6, 3, 5}) shape.push_back(random.integer(1, most));
  if (random.chance(0.4)) shape.rbegin()[1] = 1;
  return shape;
}

std::vector<float> random_weights(Random& random, std::size_t n_weights, std::size_t n_channels) {
  const double decades = std::array{0.0, 2.0, 12.0, 60.0}[static_cast<std::size_t>(random.integer(0, 3))];
  std::vector<double> size(n_channels);
  for (double& s : size) s = random.chance(0.1) ? 0.0 : random.chance(0.05) ? 1e-39 : spread(random, decades);
  std::vector<float> weight(n_weights);
  for (std::size_t i = 0; i < n_weights; ++i) weight[i] = static_cast<float>(random.normal() * size[i % n_channels]);
  return weight;
}

Grid random_input(Random& random, const ConvRequest& request) {
  Grid grid{spread(random, random.chance(0.8) ? 4 : 14) * 100, 0};
  if (request.mode == ConvMode::mult31_i16 || random.chance(0.3)) return grid;
  const bool wide = request.int16_input && request.mode != ConvMode::mult31_i8;
  const std::int64_t limit = wide ? 32768 : 128;
  grid.zero_point = random.chance(0.4) ? -limit : random.integer(-limit, limit - 1);
  return grid;
}

RealRange random_range(Random& random) {
  const double size = spread(random, random.chance(0.7) ? 6 : 50);
  const double low = random.chance(0.4) ? 0.0 : -random.unit() * size;
  return {low, low + size * (0.01 + random.unit())};
}

Request random_request(std::uint64_t seed) {
  Random random(seed);
  Request r;
  r.plain.mode = static_cast<ConvMode>(random.integer(0, 8));
  r.plain.policy = random.chance(0.3) ? PlanPolicy::classic : PlanPolicy::fixed;
  r.plain.multiplier = static_cast<MultiplierRule>(random.integer(0, 2));
  r.plain.per_channel = random.chance(0.6);
  r.plain.asymmetric = random.chance(0.6);
  r.plain.int16_input = random.chance(0.4);
  r.plain.allow_int32 = random.chance(0.3);
  const bool can_fall_back = r.plain.mode == ConvMode::pow2_folded_i8 || r.plain.mode == ConvMode::pow2_folded_i16;
  r.plain.relu_workaround = can_fall_back && random.chance(0.3);
  r.plain.weight_shape = random_shape(random);
  r.plain.input = random_input(random, r.plain);
  r.plain.output = random_range(random);
  const auto n_weights = static_cast<std::size_t>(std::accumulate(
      r.plain.weight_shape.begin(), r.plain.weight_shape.end(), std::int64_t{1}, std::multiplies<>()));
  r.weight = random_weights(random, n_weights, r.n_channels());
  if (random.chance(0.8)) {
    const double decades = random.chance(0.7) ? 4 : 60;
    for (std::size_t c = 0; c < r.n_channels(); ++c) {
      const double bias = random.normal() * spread(random, decades) * r.plain.output.high;
      r.bias.push_back(static_cast<float>(std::clamp(bias, -1e37, 1e37)));  // so that twice as much is in range
    }
  }
  if (random.chance(0.2)) {
    const auto n_inputs = static_cast<std::size_t>(r.plain.weight_shape.rbegin()[1] * r.plain.weight_shape.rbegin()[2]);
    for (std::size_t i = 0; i < n_inputs; ++i) r.mean.push_back(static_cast<float>(random.normal()));
  }
  return r;
}

int pass_limit(const ConvRequest& request) { return request.policy == PlanPolicy::classic ? 18 : 64; }

/// The plan, or nothing where the classic search ended empty-handed.
std::optional<QuantizedConv> plan_if_found(const ConvRequest& request) {
  try {
    return plan_conv(request);
  } catch (const Error& error) {
    const bool expected = request.policy == PlanPolicy::classic && error.code == ErrorCode::unsupported;
    EXPECT_TRUE(expected) << error.what();
    return std::nullopt;
  }
}

TEST(AnyRequest, HasASoundPlanAfterABoundedSearch) {
  int n_without = 0;
  int most_attempts = 0;
  for (std::uint64_t seed = 1; seed <= 100000; ++seed) {
    const Request r = random_request(seed);
    const ConvRequest request = r.view();
    const auto plan = plan_if_found(request);
    n_without += !plan;
    if (!plan) continue;
    ASSERT_EQ(verify_plan(*plan), std::vector<std::string>{}) << "seed " << seed;
    ASSERT_LE(plan->attempts, pass_limit(request)) << "seed " << seed;
    most_attempts = std::max(most_attempts, plan->attempts);
  }
  RecordProperty("classic_without_plan", n_without);
  RecordProperty("most_attempts", most_attempts);
  EXPECT_GT(most_attempts, 8);  // the search was exercised
}

template <class T>
std::vector<T> doubled(std::vector<T> values) {
  for (T& value : values) value *= 2;
  return values;
}

/// Nothing of an engine-native plan may leave float32's normal numbers, where doubling is not exact.
bool is_exact_in_float(const QuantizedConv& plan) {
  return std::all_of(plan.weight_scale.begin(), plan.weight_scale.end(),
                     [](float scale) { return scale > 1e-37F && scale < 1e37F; });
}

TEST(AnyRequest, DoublingTheLayerDoublesScalesAndChangesNoInteger) {
  for (std::uint64_t seed = 1; seed <= 30000; ++seed) {
    const Request once = random_request(seed);
    Request twice = once;
    twice.weight = doubled(once.weight);
    twice.bias = doubled(once.bias);
    twice.plain.output = {2 * once.plain.output.low, 2 * once.plain.output.high};
    const auto a = plan_if_found(once.view());
    const auto b = plan_if_found(twice.view());
    ASSERT_EQ(a.has_value(), b.has_value()) << "seed " << seed;
    if (!a || !is_exact_in_float(*a)) continue;
    SCOPED_TRACE(seed);
    ASSERT_EQ(a->weight, b->weight);
    ASSERT_EQ(a->bias, b->bias);
    ASSERT_EQ(a->gain, b->gain);
    ASSERT_EQ(a->weight_drop, b->weight_drop);
    ASSERT_EQ(a->diagnostics, b->diagnostics);
    ASSERT_EQ(a->output.zero_point, b->output.zero_point);
    ASSERT_EQ(a->output.steps_per_unit, 2 * b->output.steps_per_unit);
    ASSERT_EQ(a->weight_steps_per_unit, doubled(b->weight_steps_per_unit));
    ASSERT_EQ(a->bias_steps_per_unit, doubled(b->bias_steps_per_unit));
  }
}

/// values[c] -> result[order[c]] along the last axis.
template <class T>
std::vector<T> permuted(const std::vector<T>& values, const std::vector<std::size_t>& order) {
  if (values.size() % order.size() != 0) return values;  // one lane for all channels
  std::vector<T> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    result[i - i % order.size() + order[i % order.size()]] = values[i];
  }
  return result;
}

std::vector<DiagnosticCode> codes_of(const QuantizedConv& plan) {
  std::vector<DiagnosticCode> codes;
  for (const Diagnostic& diagnostic : plan.diagnostics) codes.push_back(diagnostic.code);
  return codes;
}

/// A permutation of the output channels that keeps each in its group.
std::vector<std::size_t> random_order(Random& random, const Shape& shape) {
  const auto n_outputs = static_cast<std::size_t>(shape.back());
  std::vector<std::size_t> order(n_outputs * static_cast<std::size_t>(shape.rbegin()[1]));
  std::iota(order.begin(), order.end(), 0u);
  for (std::size_t c = 0; c < order.size(); ++c) {
    const std::size_t first = c - c % n_outputs;
    const auto other = first + static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(c - first)));
    std::swap(order[c], order[other]);
  }
  return order;
}

TEST(AnyRequest, PermutingChannelsPermutesThePlan) {
  for (std::uint64_t seed = 1; seed <= 30000; ++seed) {
    Random random(seed);
    const Request straight = random_request(seed);
    const std::vector<std::size_t> order = random_order(random, straight.plain.weight_shape);
    Request mixed = straight;
    mixed.weight = permuted(straight.weight, order);
    mixed.bias = permuted(straight.bias, order);
    const auto a = plan_if_found(straight.view());
    const auto b = plan_if_found(mixed.view());
    ASSERT_EQ(a.has_value(), b.has_value()) << "seed " << seed;
    if (!a) continue;
    SCOPED_TRACE(seed);
    ASSERT_EQ(permuted(a->weight, order), b->weight);
    ASSERT_EQ(permuted(a->bias, order), b->bias);
    ASSERT_EQ(permuted(a->gain, order), b->gain);
    ASSERT_EQ(permuted(a->weight_steps_per_unit, order), b->weight_steps_per_unit);
    ASSERT_EQ(permuted(a->weight_scale, order), b->weight_scale);
    ASSERT_EQ(permuted(a->weight_drop, order), b->weight_drop);
    ASSERT_EQ(a->output, b->output);
    ASSERT_EQ(codes_of(*a), codes_of(*b));
  }
}

}  // namespace
}  // namespace weightmill
