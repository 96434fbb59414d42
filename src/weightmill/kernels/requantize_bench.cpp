#include "requantize.h"

#include <vector>

#include <benchmark/benchmark.h>

#include "testkit/random.h"

namespace weightmill {
namespace {

/// Rows of 64 channels, 128 pixels.
void BM_Requantize(benchmark::State& state) {
  const auto rule = static_cast<Rounding>(state.range(0));
  testkit::Random random(7);
  const std::vector<std::int64_t> multiplier(64, rule == Rounding::after_shift ? 100 : 0x60000000);
  const std::vector<std::int32_t> shift(64, rule == Rounding::after_shift || rule == Rounding::folded ? 12 : 40);
  const std::vector<float> gain(64, 0x1.8p-10F);
  const std::vector<double> wide_gain(64, 0x1.8p-10);
  std::vector<std::int32_t> acc(64 * 128), codes(acc.size());
  for (std::int32_t& a : acc) a = static_cast<std::int32_t>(random.integer(-60000, 60000));
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        requantize(rule, {multiplier, shift, gain, wide_gain}, {}, std::span<const std::int32_t>(acc), codes));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(acc.size()));
  state.SetLabel(std::string(name_of(rule)));
}
BENCHMARK(BM_Requantize)->DenseRange(0, static_cast<int>(Rounding::ethos_u_natural));

}  // namespace
}  // namespace weightmill
