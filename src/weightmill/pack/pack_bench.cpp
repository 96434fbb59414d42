#include <benchmark/benchmark.h>

#include <array>
#include <cstring>
#include <span>
#include <vector>

#include <testkit/random.h>
#include <weightmill/codec/codec.h>
#include "accelerator.h"
#include "brick_order.h"
#include "weight_volume.h"

namespace weightmill {
namespace {

/// A layer as networks have them, and how it is walked through.
struct Layer {
  const char* name;
  std::array<int, 4> ohwi;
  Traversal traversal;
};

constexpr std::array<Layer, 4> kLayers{{{"pointwise", {256, 1, 1, 256}, Traversal::depth_first},
                                        {"conv 3x3", {128, 3, 3, 64}, Traversal::part_kernel_first},
                                        {"depthwise 3x3", {1024, 3, 3, 1}, Traversal::depthwise},
                                        {"fully connected", {128, 1, 1, 640}, Traversal::depth_first}}};

std::vector<std::int8_t> weights_of(const Layer& layer) {
  std::size_t n = 1;
  for (const int extent : layer.ohwi) n *= static_cast<std::size_t>(extent);
  std::vector<std::int8_t> values(n);
  testkit::Random random(7);
  for (auto& value : values) value = static_cast<std::int8_t>(random.integer(-127, 127));
  return values;
}

BrickGeometry geometry_of(const Layer& layer, const char* accelerator) {
  const Accelerator& npu = find_accelerator(accelerator);
  BrickGeometry g;
  g.family = npu.family;
  g.traversal = layer.traversal;
  g.ofm_block_depth = 64;
  g.ifm_block_depth = layer.traversal == Traversal::part_kernel_first ? 16 : 64;
  g.ofm_ublock_depth = npu.ofm_ublocks.front().depth;
  g.ifm_ublock_depth = npu.ifm_ublock.depth;
  g.macs_per_cycle = npu.macs_per_cycle;
  return g;
}

void order(benchmark::State& state, const char* accelerator) {
  const Layer& layer = kLayers[static_cast<std::size_t>(state.range(0))];
  const auto values = weights_of(layer);
  const WeightVolume volume = layer.traversal == Traversal::depthwise
                                  ? volume_from_hwio(std::span(values), layer.ohwi, 3)
                                  : volume_from_ohwi(std::span(values), layer.ohwi, 3);
  const BrickGeometry geometry = geometry_of(layer, accelerator);
  std::vector<std::int16_t> out;
  for (auto _ : state) {
    brick_order(volume, geometry, out);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(out.size()));
  state.SetLabel(layer.name);
}

void BM_OrderU55(benchmark::State& state) { order(state, "ethos-u55-128"); }
void BM_OrderU85(benchmark::State& state) { order(state, "ethos-u85-256"); }

/// The least that an order could cost: each weight widened to 16 bits, in the order in which they lie.
void BM_Widen(benchmark::State& state) {
  const auto values = weights_of(kLayers[static_cast<std::size_t>(state.range(0))]);
  std::vector<std::int16_t> out(values.size());
  for (auto _ : state) {
    for (std::size_t k = 0; k < values.size(); ++k) out[k] = static_cast<std::int16_t>(values[k] - 3);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(out.size()));
}

/// What follows the order: how small a share of packing it is.
void BM_Encode(benchmark::State& state) {
  const Layer& layer = kLayers[static_cast<std::size_t>(state.range(0))];
  const auto values = weights_of(layer);
  const auto ordered =
      brick_order(volume_from_ohwi(std::span(values), layer.ohwi, 3), geometry_of(layer, "ethos-u55-128"));
  std::size_t size = 0;
  for (auto _ : state) benchmark::DoNotOptimize(size = mlw::encode(ordered, mlw::Effort::reference).size());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ordered.size()));
  state.counters["bits_per_weight"] = 8.0 * static_cast<double>(size) / static_cast<double>(values.size());
}

BENCHMARK(BM_Widen)->DenseRange(0, 3);
BENCHMARK(BM_OrderU55)->DenseRange(0, 3);
BENCHMARK(BM_OrderU85)->DenseRange(0, 3);
BENCHMARK(BM_Encode)->DenseRange(0, 3);

}  // namespace
}  // namespace weightmill
