#include "convolve.h"

#include <benchmark/benchmark.h>

#include "testkit/random.h"

namespace weightmill {
namespace {

/// One row of a 3x3 convolution: 56 pixels, `channels` in and out.
template <auto accumulate>
void BM_Row3x3(benchmark::State& state) {
  const auto channels = static_cast<std::size_t>(state.range(0));
  testkit::Random random(7);
  std::vector<std::int16_t> input(3 * 58 * channels + kMaxRunLength), weights(9 * channels * channels);
  for (auto* codes : {&input, &weights}) {
    for (std::int16_t& code : *codes) code = static_cast<std::int16_t>(random.integer(-128, 127));
  }
  const std::size_t length = 3 * channels / ((3 * channels + kMaxRunLength - 1) / kMaxRunLength);
  std::vector<std::size_t> offset;
  for (std::size_t i = 0; i < 9 * channels; i += length)
    offset.push_back(i / (3 * channels) * 58 * channels + i % (3 * channels));
  const auto panels = pack_panels(weights, offset.size(), length, channels);
  std::vector<std::int32_t> acc(56 * channels);
  for (auto _ : state) {
    accumulate({56, channels, offset, length}, input, panels, channels, channels, acc);
    benchmark::DoNotOptimize(acc.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(56 * 9 * channels * channels));
}
BENCHMARK(BM_Row3x3<accumulate_panels>)->Arg(32)->Arg(64)->Arg(128);
BENCHMARK(BM_Row3x3<accumulate_panels_scalar>)->Arg(64);

}  // namespace
}  // namespace weightmill
