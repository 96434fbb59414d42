// A request of the planner from raw bytes: any float, any grid, any range, shapes that fit and shapes that do not.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include <weightmill/base/error.h>
#include <weightmill/quantize/conv_plan.h>
#include <weightmill/quantize/conv_search.h>
#include <weightmill/quantize/engine_view.h>
#include <weightmill/quantize/weight_plan.h>
#include <weightmill/verify/plan_invariants.h>

#include "bytes.h"

namespace {

using namespace weightmill;

using fuzz::Bytes;

/// Extents of up to 4, one of which the flag may spoil.
Shape take_shape(Bytes& bytes, bool spoil) {
  Shape shape;
  const auto packed = bytes.take<std::uint16_t>();
  for (int axis = 0; axis < 5 + (packed >> 15); ++axis) shape.push_back(1 + (packed >> (2 * axis) & 3));
  if (spoil) shape[bytes.take<std::uint8_t>() % shape.size()] = bytes.take<std::int64_t>();
  return shape;
}

void plan_all(const ConvRequest& request) {
  const QuantizedConv plan = plan_conv(request);
  engine_view(plan);
  if (!verify_plan(plan).empty()) std::abort();
  search_output_scale(request, {.n_candidates = 2});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes({data, size});
  const auto flags = bytes.take<std::uint16_t>();
  const auto has = [&](int bit) { return (flags >> bit & 1) != 0; };
  ConvRequest request;
  request.mode = static_cast<ConvMode>(bytes.take<std::uint8_t>() % 9);
  request.weight_shape = take_shape(bytes, has(0));
  request.input = {bytes.take<double>(), bytes.take<std::int32_t>()};
  request.output = {bytes.take<double>(), bytes.take<double>()};
  request.policy = has(1) ? PlanPolicy::classic : PlanPolicy::fixed;
  request.per_channel = has(2);
  request.asymmetric = has(3);
  request.int16_input = has(4);
  request.relu_workaround = has(5);
  request.allow_int32 = has(6);
  request.allow_zero_output = has(7);
  request.multiplier = has(12) ? MultiplierRule::exact : has(13) ? MultiplierRule::nearest : MultiplierRule::by_policy;
  const auto extent = [&](int from_last) {
    return static_cast<std::size_t>(request.weight_shape.rbegin()[from_last] & 7);
  };
  const auto bias = bytes.many<float>(extent(0) * extent(1));
  const auto mean = bytes.many<float>(extent(1) * extent(2));
  if (has(8)) request.bias = bias;
  if (has(9)) request.input_mean = mean;
  std::size_t n_weights = 1;
  for (const std::int64_t e : request.weight_shape) n_weights *= static_cast<std::size_t>(e & 7);
  const auto weight = bytes.many<float>(n_weights);
  request.weight = weight;
  try {
    plan_weights({.weight = weight,
                  .weight_shape = request.weight_shape,
                  .bits = has(10) ? 4u : 8u,
                  .group_size = has(11) ? 16u : 0u});
    plan_all(request);
  } catch (const Error&) {
    // To refuse is a right answer. Any other exception, crash or hang is a bug.
  }
  return 0;
}
