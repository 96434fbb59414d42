// Planning time of one layer on one core: small layers in microseconds, large ones in weights a second.
#include "conv_plan.h"

#include <numeric>
#include <vector>

#include <benchmark/benchmark.h>

#include "testkit/random.h"

namespace weightmill {
namespace {

/// Arguments: mode, then the weight shape [kh, kw, I, G, O].
void BM_PlanConv(benchmark::State& state) {
  ConvRequest request;
  request.mode = static_cast<ConvMode>(state.range(0));
  for (std::size_t axis = 1; axis <= 5; ++axis) request.weight_shape.push_back(state.range(axis));
  const auto n_weights = static_cast<std::size_t>(
      std::accumulate(request.weight_shape.begin(), request.weight_shape.end(), std::int64_t{1}, std::multiplies<>()));
  testkit::Random random(1);
  std::vector<float> weight(n_weights);
  for (float& w : weight) w = static_cast<float>(random.normal() * 0.05);
  std::vector<float> bias(static_cast<std::size_t>(state.range(4) * state.range(5)));
  for (float& b : bias) b = static_cast<float>(random.normal());
  request.weight = weight;
  request.bias = bias;
  request.input = {20.0, -128};
  request.output = {-3.0, 9.0};
  for (auto _ : state) benchmark::DoNotOptimize(plan_conv(request).weight.data());
  state.SetLabel(std::string(name_of(request.mode)));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * n_weights));
}

void shapes(benchmark::internal::Benchmark* bench) {
  for (const ConvMode mode : {ConvMode::mult31_i8, ConvMode::pow2_folded_i8, ConvMode::mult7_i8}) {
    const auto m = static_cast<std::int64_t>(mode);
    bench->Args({m, 3, 3, 3, 1, 8});       // the first layer of a MobileNet
    bench->Args({m, 1, 1, 8, 1, 16});
    bench->Args({m, 3, 3, 1, 64, 1});      // depthwise
    bench->Args({m, 3, 3, 1, 256, 1});
    bench->Args({m, 3, 3, 256, 1, 256});
    bench->Args({m, 3, 3, 512, 1, 512});
    bench->Args({m, 1, 1, 1280, 1, 1000});
  }
}
BENCHMARK(BM_PlanConv)->Apply(shapes);

}  // namespace
}  // namespace weightmill
