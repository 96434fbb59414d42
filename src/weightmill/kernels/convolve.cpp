#include "convolve.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convolve.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace weightmill {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
using Lanes32 = hn::CappedTag<std::int32_t, kPanelChannels>;
using Lanes16 = hn::RepartitionToNarrow<Lanes32>;
using Vector32 = hn::Vec<Lanes32>;
using Vector16 = hn::Vec<Lanes16>;

constexpr std::size_t kLanes = HWY_MIN(kPanelChannels, HWY_LANES(std::int32_t));
constexpr std::size_t kPanelVectors = kPanelChannels / kLanes;
/// Sums in registers: pixels times vectors, chosen so that they and the operands fit 32 (AVX-512) or 16 registers.
constexpr std::size_t kBlockPixels = kPanelVectors == 1 ? 8 : kPanelVectors == 2 ? 4 : 2;
constexpr std::size_t kBlockPanels = kPanelVectors == 1 ? 2 : 1;

/// Two neighbouring elements in every 32-bit lane.
HWY_INLINE HWY_ATTR Vector16 broadcast_pair(const std::int16_t* pair) {
  std::int32_t both;
  std::memcpy(&both, pair, sizeof both);
  return hn::BitCast(Lanes16(), hn::Set(Lanes32(), both));
}

/// What one block reads and adds to.
struct Block {
  const std::int16_t* input;
  const std::int16_t* weights;  ///< of the block's first panel in the first run
  std::size_t run_size;         ///< elements of a packed run
  std::size_t n_channels;       ///< of the block; fewer than its panels hold at the tensor's end
  std::int32_t* acc;
  std::size_t acc_step;
};

HWY_INLINE HWY_ATTR void add_to(Vector32 sum, std::int32_t* acc, std::size_t n_channels) {
  const Lanes32 d;
  if (n_channels >= kLanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, acc), sum), d, acc);
    return;
  }
  HWY_ALIGN std::int32_t lanes[kLanes];
  hn::Store(sum, d, lanes);
  for (std::size_t c = 0; c < n_channels; ++c) {
    acc[c] = static_cast<std::int32_t>(static_cast<std::uint32_t>(acc[c]) + static_cast<std::uint32_t>(lanes[c]));
  }
}

template <std::size_t kPixels, std::size_t kPanels>
HWY_ATTR void accumulate_block(const TapRuns& taps, const Block& block) {
  constexpr std::size_t kVectors = kPanels * kPanelVectors;
  const Lanes32 d32;
  const Lanes16 d16;
  Vector32 sum[kPixels][kVectors];
  Vector32 odd[kPixels][kVectors];  // used only where a target keeps two halves of the pair sums
  for (std::size_t p = 0; p < kPixels; ++p) {
    for (std::size_t v = 0; v < kVectors; ++v) sum[p][v] = odd[p][v] = hn::Zero(d32);
  }
  const std::size_t panel_size = taps.length * kPanelChannels;
  for (std::size_t r = 0; r < taps.offset.size(); ++r) {
    const std::int16_t* x = block.input + taps.offset[r];
    const std::int16_t* w = block.weights + r * block.run_size;
    for (std::size_t k = 0; k < taps.length; k += 2, x += 2, w += 2 * kPanelChannels) {
      Vector16 weights[kVectors];
      for (std::size_t v = 0; v < kVectors; ++v) {
        weights[v] = hn::LoadU(d16, w + v / kPanelVectors * panel_size + v % kPanelVectors * 2 * kLanes);
      }
      for (std::size_t p = 0; p < kPixels; ++p) {
        const Vector16 pair = broadcast_pair(x + p * taps.pixel_step);
        for (std::size_t v = 0; v < kVectors; ++v) {
          sum[p][v] = hn::ReorderWidenMulAccumulate(d32, pair, weights[v], sum[p][v], odd[p][v]);
        }
      }
    }
  }
  for (std::size_t p = 0; p < kPixels; ++p) {
    for (std::size_t v = 0; v < kVectors && v * kLanes < block.n_channels; ++v) {
      add_to(hn::RearrangeToOddPlusEven(sum[p][v], odd[p][v]), block.acc + p * block.acc_step + v * kLanes,
             block.n_channels - v * kLanes);
    }
  }
}

template <std::size_t kPanels>
HWY_ATTR void accumulate_pixels(const TapRuns& taps, Block block) {
  std::size_t left = taps.n_pixels;
  const auto advance = [&](std::size_t pixels) {
    block.input += pixels * taps.pixel_step;
    block.acc += pixels * block.acc_step;
    left -= pixels;
  };
  for (; left >= kBlockPixels; advance(kBlockPixels)) accumulate_block<kBlockPixels, kPanels>(taps, block);
  if constexpr (kBlockPixels > 4) {
    if (left >= 4) accumulate_block<4, kPanels>(taps, block), advance(4);
  }
  if constexpr (kBlockPixels > 2) {
    if (left >= 2) accumulate_block<2, kPanels>(taps, block), advance(2);
  }
  if (left >= 1) accumulate_block<1, kPanels>(taps, block);
}

HWY_ATTR void accumulate_panels(const TapRuns& taps, const std::int16_t* input, const std::int16_t* panels,
                                std::size_t n_channels, std::size_t acc_step, std::int32_t* acc) {
  const std::size_t run_size = packed_run_size(taps.length, n_channels);
  const std::size_t panel_size = taps.length * kPanelChannels;
  for (std::size_t c = 0; c < n_channels;) {
    const std::size_t n_panels = n_channels - c > kPanelChannels ? kBlockPanels : 1;
    const std::size_t n = std::min(n_channels - c, n_panels * kPanelChannels);
    const Block block{input, panels + c / kPanelChannels * panel_size, run_size, n, acc + c, acc_step};
    n_panels == 1 ? accumulate_pixels<1>(taps, block) : accumulate_pixels<kBlockPanels>(taps, block);
    c += n;
  }
}
/// Adds the taps of kVectors vectors of neighbouring channels; their sums stay in registers.
template <std::size_t kVectors, class D>
HWY_ATTR void accumulate_strip(D d32, const TapRuns& taps, const std::int16_t* input, const std::int16_t* weights,
                               std::size_t n_channels, std::int32_t* acc) {
  const hn::Rebind<std::int16_t, D> d16;
  const std::size_t lanes = hn::Lanes(d32);
  hn::Vec<D> sum[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) sum[v] = hn::LoadU(d32, acc + v * lanes);
  for (std::size_t r = 0; r < taps.offset.size(); ++r, weights += n_channels) {
    const std::int16_t* x = input + taps.offset[r];
    for (std::size_t v = 0; v < kVectors; ++v) {
      const auto codes = hn::PromoteTo(d32, hn::LoadU(d16, x + v * lanes));
      sum[v] = hn::Add(sum[v], hn::Mul(codes, hn::PromoteTo(d32, hn::LoadU(d16, weights + v * lanes))));
    }
  }
  for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(sum[v], d32, acc + v * lanes);
}

HWY_ATTR void accumulate_depthwise(const TapRuns& taps, const std::int16_t* input, const std::int16_t* weights,
                                   std::int32_t* acc) {
  const Lanes32 wide;
  const hn::CappedTag<std::int32_t, 1> one;
  const std::size_t n_channels = taps.length, lanes = hn::Lanes(wide);
  for (std::size_t p = 0; p < taps.n_pixels; ++p, input += taps.pixel_step, acc += n_channels) {
    std::size_t c = 0;
    for (; c + 4 * lanes <= n_channels; c += 4 * lanes) {
      accumulate_strip<4>(wide, taps, input + c, weights + c, n_channels, acc + c);
    }
    for (; c + lanes <= n_channels; c += lanes) {
      accumulate_strip<1>(wide, taps, input + c, weights + c, n_channels, acc + c);
    }
    for (; c < n_channels; ++c) accumulate_strip<1>(one, taps, input + c, weights + c, n_channels, acc + c);
  }
}
#else
void accumulate_depthwise(const TapRuns& taps, const std::int16_t* input, const std::int16_t* weights,
                          std::int32_t* acc) {
  const std::size_t n_values = taps.n_pixels * taps.length;
  accumulate_depthwise_scalar(taps, {input, n_values}, {weights, taps.length * taps.offset.size()}, {acc, n_values});
}

void accumulate_panels(const TapRuns& taps, const std::int16_t* input, const std::int16_t* panels,
                       std::size_t n_channels, std::size_t acc_step, std::int32_t* acc) {
  const std::size_t size = packed_run_size(taps.length, n_channels) * taps.offset.size();
  accumulate_panels_scalar(taps, {input, taps.n_pixels * taps.pixel_step}, {panels, size}, n_channels, acc_step,
                           {acc, taps.n_pixels * acc_step});
}
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weightmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weightmill {

HWY_EXPORT(accumulate_panels);
HWY_EXPORT(accumulate_depthwise);

std::vector<std::int16_t> pack_panels(std::span<const std::int16_t> weights, std::size_t n_runs, std::size_t length,
                                      std::size_t n_channels) {
  const std::size_t run_size = packed_run_size(length, n_channels);
  std::vector<std::int16_t> panels(n_runs * run_size);
  for (std::size_t run = 0; run < n_runs; ++run) {
    for (std::size_t k = 0; k < length; ++k) {
      const std::int16_t* row = weights.data() + (run * length + k) * n_channels;
      std::int16_t* to = panels.data() + run * run_size + k / 2 * 2 * kPanelChannels + k % 2;
      for (std::size_t c = 0; c < n_channels; c += kPanelChannels, to += length * kPanelChannels) {
        const std::size_t n_lanes = std::min(kPanelChannels, n_channels - c);
        for (std::size_t lane = 0; lane < n_lanes; ++lane) to[2 * lane] = row[c + lane];
      }
    }
  }
  return panels;
}

void accumulate_panels(const TapRuns& taps, std::span<const std::int16_t> input, std::span<const std::int16_t> panels,
                       std::size_t n_channels, std::size_t acc_step, std::span<std::int32_t> acc) noexcept {
  HWY_DYNAMIC_DISPATCH(accumulate_panels)(taps, input.data(), panels.data(), n_channels, acc_step, acc.data());
}

void accumulate_panels_scalar(const TapRuns& taps, std::span<const std::int16_t> input,
                              std::span<const std::int16_t> panels, std::size_t n_channels, std::size_t acc_step,
                              std::span<std::int32_t> acc) noexcept {
  const std::size_t run_size = packed_run_size(taps.length, n_channels);
  for (std::size_t p = 0; p < taps.n_pixels; ++p) {
    for (std::size_t c = 0; c < n_channels; ++c) {
      const std::size_t panel = c / kPanelChannels, lane = c % kPanelChannels;
      auto sum = static_cast<std::uint32_t>(acc[p * acc_step + c]);
      for (std::size_t r = 0; r < taps.offset.size(); ++r) {
        const std::int16_t* x = input.data() + p * taps.pixel_step + taps.offset[r];
        const std::int16_t* w = panels.data() + r * run_size + panel * taps.length * kPanelChannels;
        for (std::size_t k = 0; k < taps.length; ++k) {
          sum += static_cast<std::uint32_t>(x[k] * w[2 * (k / 2 * kPanelChannels + lane) + k % 2]);
        }
      }
      acc[p * acc_step + c] = static_cast<std::int32_t>(sum);
    }
  }
}

void accumulate_depthwise(const TapRuns& taps, std::span<const std::int16_t> input,
                          std::span<const std::int16_t> weights, std::span<std::int32_t> acc) noexcept {
  HWY_DYNAMIC_DISPATCH(accumulate_depthwise)(taps, input.data(), weights.data(), acc.data());
}

void accumulate_depthwise_scalar(const TapRuns& taps, std::span<const std::int16_t> input,
                                 std::span<const std::int16_t> weights, std::span<std::int32_t> acc) noexcept {
  const std::size_t n_channels = taps.length;
  for (std::size_t i = 0; i < taps.n_pixels * n_channels; ++i) {
    const std::size_t p = i / n_channels, c = i % n_channels;
    auto sum = static_cast<std::uint32_t>(acc[i]);
    for (std::size_t r = 0; r < taps.offset.size(); ++r) {
      sum += static_cast<std::uint32_t>(input[p * taps.pixel_step + taps.offset[r] + c] * weights[r * n_channels + c]);
    }
    acc[i] = static_cast<std::int32_t>(sum);
  }
}

}  // namespace weightmill
#endif
