#include <iterator>

#include <benchmark/benchmark.h>

#include <testkit/weights.h>

#include "codec.h"

namespace weightmill::mlw {
namespace {

/// What the encoders meet: dense weights, 80 % zeros, few values, and ranges that change.
enum Data { dense, sparse, few_values, mixed };

std::vector<std::int16_t> weights_of(std::int64_t data) {
  constexpr std::size_t kSize = 400000;
  switch (data) {
    case dense: return testkit::normal_weights(7, kSize, 25);
    case sparse: return testkit::normal_weights(7, kSize, 25, 0.2);
    case few_values: return testkit::normal_weights(7, kSize, 1.5);
    default: break;
  }
  std::vector<std::int16_t> weights;
  for (std::uint64_t seed = 1; weights.size() < kSize; ++seed) {
    const auto more = testkit::random_weights(seed, 20000);
    weights.insert(weights.end(), more.begin(), more.end());
  }
  return weights;
}

void report(benchmark::State& state, std::size_t n_weights, std::size_t n_bytes) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(n_weights));
  state.counters["bits_per_weight"] = 8.0 * static_cast<double>(n_bytes) / static_cast<double>(n_weights);
}

template <Effort kEffort>
void BM_Encode(benchmark::State& state) {
  const auto weights = weights_of(state.range(0));
  std::size_t n_bytes = 0;
  for (auto _ : state) benchmark::DoNotOptimize(n_bytes = encode(weights, kEffort).size());
  report(state, weights.size(), n_bytes);
}

template <Effort kEffort>
void BM_Decode(benchmark::State& state) {
  const auto weights = weights_of(state.range(0));
  const auto stream = encode(weights, kEffort);
  for (auto _ : state) benchmark::DoNotOptimize(decode(stream));
  report(state, weights.size(), stream.size());
}

BENCHMARK(BM_Encode<Effort::reference>)->ArgName("data")->DenseRange(dense, mixed);
BENCHMARK(BM_Encode<Effort::regor>)->ArgName("data")->DenseRange(dense, mixed);
BENCHMARK(BM_Decode<Effort::reference>)->ArgName("data")->DenseRange(dense, mixed);
BENCHMARK(BM_Decode<Effort::regor>)->ArgName("data")->DenseRange(dense, mixed);

}  // namespace
}  // namespace weightmill::mlw
