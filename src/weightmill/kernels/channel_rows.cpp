#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "channel_rows.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first: it includes this file once for each target.
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdlib>

#include "channel_rows.h"

HWY_BEFORE_NAMESPACE();
namespace weightmill::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

enum class Step { multiply, divide };

/// The definition of one quantized weight.
template <Step kStep>
HWY_INLINE std::int8_t quantize_one(float weight, double step) {
  const double x = kStep == Step::multiply ? static_cast<double>(weight) * step : static_cast<double>(weight) / step;
  return static_cast<std::int8_t>(std::nearbyint(std::clamp(x, -128.0, 127.0)));
}

#if HWY_TARGET != HWY_SCALAR
/// The nearest integers of weight * step (or weight / step), as many as `D32` has lanes.
template <Step kStep, class D32>
HWY_INLINE hn::VFromD<D32> quantize_chunk(D32 d32, const float* weight, const double* step) {
  using D64 = hn::Repartition<double, D32>;
  const D64 d64;
  const hn::Rebind<float, D64> d_float;
  // Adding 1.5 * 2^52 leaves an integer of up to 51 bits in the low end of the mantissa, rounded half to even.
  const auto magic = hn::Set(d64, 0x1.8p52);
  const auto rounded = [&](std::size_t at) {
    const auto w = hn::PromoteTo(d64, hn::LoadU(d_float, weight + at));
    const auto s = hn::LoadU(d64, step + at);
    const auto x = kStep == Step::multiply ? hn::Mul(w, s) : hn::Div(w, s);
    return hn::BitCast(d32, hn::Add(x, magic));
  };
  return hn::ConcatEven(d32, rounded(hn::Lanes(d64)), rounded(0));
}
#endif

/// Quantizes `kRows` rows of `width` channels and adds them to the 16-bit sums.
template <Step kStep, std::size_t kRows>
void quantize_some_rows(const float* HWY_RESTRICT weight, std::size_t stride, std::size_t width,
                        const double* HWY_RESTRICT step, std::int8_t* HWY_RESTRICT out,
                        std::int16_t* HWY_RESTRICT sum) {
  std::size_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::int32_t> d32;
  const hn::Rebind<std::int16_t, decltype(d32)> d16;
  const hn::Rebind<std::int8_t, decltype(d32)> d8;
  for (; c + hn::Lanes(d32) <= width; c += hn::Lanes(d32)) {
    auto total = hn::LoadU(d16, sum + c);
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto q = hn::DemoteTo(d16, quantize_chunk<kStep>(d32, weight + r * stride + c, step + c));
      hn::StoreU(hn::DemoteTo(d8, q), d8, out + r * stride + c);
      total = hn::Add(total, q);
    }
    hn::StoreU(total, d16, sum + c);
  }
#endif
  for (; c < width; ++c) {
    for (std::size_t r = 0; r < kRows; ++r) {
      out[r * stride + c] = quantize_one<kStep>(weight[r * stride + c], step[c]);
      sum[c] = static_cast<std::int16_t>(sum[c] + out[r * stride + c]);
    }
  }
}

/// 255 rows of 8-bit values fit a 16-bit sum; the block of channels keeps steps and sums in the first-level cache.
constexpr std::size_t kRowsPerSum = 252;
constexpr std::size_t kBlock = 1024;

template <Step kStep>
void quantize_block(const float* weight, std::size_t n_rows, std::size_t stride, std::size_t width, const double* step,
                    std::int8_t* out, std::int64_t* sum) {
  std::array<std::int16_t, kBlock> short_sum;
  for (std::size_t first = 0; first < n_rows; first += kRowsPerSum) {
    const std::size_t last = std::min(n_rows, first + kRowsPerSum);
    std::fill_n(short_sum.begin(), width, std::int16_t{0});
    std::size_t r = first;
    for (; r + 4 <= last; r += 4) {
      quantize_some_rows<kStep, 4>(weight + r * stride, stride, width, step, out + r * stride, short_sum.data());
    }
    for (; r < last; ++r) {
      quantize_some_rows<kStep, 1>(weight + r * stride, stride, width, step, out + r * stride, short_sum.data());
    }
    for (std::size_t c = 0; c < width; ++c) sum[c] += short_sum[c];
  }
}

void multiply_block(const float* weight, std::size_t n_rows, std::size_t stride, std::size_t width, const double* step,
                    std::int8_t* out, std::int64_t* sum) {
  quantize_block<Step::multiply>(weight, n_rows, stride, width, step, out, sum);
}

void divide_block(const float* weight, std::size_t n_rows, std::size_t stride, std::size_t width, const double* step,
                  std::int8_t* out, std::int64_t* sum) {
  quantize_block<Step::divide>(weight, n_rows, stride, width, step, out, sum);
}

template <std::size_t kRows>
void peak_some_rows(const float* HWY_RESTRICT weight, std::size_t stride, std::size_t width,
                    std::uint32_t* HWY_RESTRICT peak) {
  const hn::ScalableTag<float> d_float;
  const hn::RebindToUnsigned<decltype(d_float)> d;
  std::size_t c = 0;
  for (; c + hn::Lanes(d) <= width; c += hn::Lanes(d)) {
    auto most = hn::LoadU(d, peak + c);
    for (std::size_t r = 0; r < kRows; ++r) {
      most = hn::Max(most, hn::BitCast(d, hn::Abs(hn::LoadU(d_float, weight + r * stride + c))));
    }
    hn::StoreU(most, d, peak + c);
  }
  for (; c < width; ++c) {
    for (std::size_t r = 0; r < kRows; ++r) {
      peak[c] = std::max(peak[c], std::bit_cast<std::uint32_t>(weight[r * stride + c]) & 0x7fffffffu);
    }
  }
}

void peak_block(const float* weight, std::size_t n_rows, std::size_t stride, std::size_t width, std::uint32_t* peak) {
  std::size_t r = 0;
  for (; r + 4 <= n_rows; r += 4) peak_some_rows<4>(weight + r * stride, stride, width, peak);
  for (; r < n_rows; ++r) peak_some_rows<1>(weight + r * stride, stride, width, peak);
}

void abs_sum_rows(const std::int8_t* HWY_RESTRICT weight, std::size_t n_rows, std::size_t stride, std::size_t width,
                  std::int16_t* HWY_RESTRICT sum) {
  const hn::ScalableTag<std::int16_t> d16;
  const hn::Rebind<std::int8_t, decltype(d16)> d8;
  for (std::size_t r = 0; r < n_rows; ++r) {
    const std::int8_t* row = weight + r * stride;
    std::size_t c = 0;
    for (; c + hn::Lanes(d16) <= width; c += hn::Lanes(d16)) {
      const auto q = hn::Abs(hn::PromoteTo(d16, hn::LoadU(d8, row + c)));
      hn::StoreU(hn::Add(hn::LoadU(d16, sum + c), q), d16, sum + c);
    }
    for (; c < width; ++c) sum[c] = static_cast<std::int16_t>(sum[c] + std::abs(row[c]));
  }
}

void abs_sum_block(const std::int8_t* weight, std::size_t n_rows, std::size_t stride, std::size_t width,
                   std::int64_t* sum) {
  std::array<std::int16_t, kBlock> short_sum;
  for (std::size_t first = 0; first < n_rows; first += kRowsPerSum) {
    const std::size_t rows = std::min(n_rows - first, kRowsPerSum);
    std::fill_n(short_sum.begin(), width, std::int16_t{0});
    abs_sum_rows(weight + first * stride, rows, stride, width, short_sum.data());
    for (std::size_t c = 0; c < width; ++c) sum[c] += short_sum[c];
  }
}

}  // namespace
}  // namespace weightmill::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weightmill {
namespace {

HWY_EXPORT(multiply_block);
HWY_EXPORT(divide_block);
HWY_EXPORT(peak_block);
HWY_EXPORT(abs_sum_block);

constexpr std::size_t kBlockWidth = 1024;

/// Rows of few channels are taken `n` at a time, as one row of n * C, so that vectors are filled.
struct Tiling {
  std::size_t n_channels;
  std::size_t n;       ///< rows in a tile row
  std::size_t n_rows;  ///< tile rows; the rows after n * n_rows are left over

  std::size_t width() const noexcept { return n * n_channels; }
  std::size_t covered() const noexcept { return n_rows * width(); }  ///< weights
};

constexpr std::size_t kVector = 16;  // channels of the widest target
constexpr std::size_t kFewChannels = kBlockWidth / kVector;

Tiling tile(std::size_t n_weights, std::size_t n_channels) noexcept {
  std::size_t n = 1;
  if (n_channels < kFewChannels) {
    while (n * n_channels % kVector != 0) n *= 2;
  }
  return {n_channels, n, n_weights / (n * n_channels)};
}

template <class T>
void repeat(std::span<const T> values, std::size_t n, T* out) noexcept {
  for (std::size_t i = 0; i < n; ++i) std::copy(values.begin(), values.end(), out + i * values.size());
}

void multiply(const float* weight, std::size_t n_rows, std::size_t stride, std::size_t width, const double* step,
              std::int8_t* out, std::int64_t* sum) {
  HWY_DYNAMIC_DISPATCH(multiply_block)(weight, n_rows, stride, width, step, out, sum);
}

void divide(const float* weight, std::size_t n_rows, std::size_t stride, std::size_t width, const double* step,
            std::int8_t* out, std::int64_t* sum) {
  HWY_DYNAMIC_DISPATCH(divide_block)(weight, n_rows, stride, width, step, out, sum);
}

using QuantizeBlock = decltype(&multiply);

/// Runs `block` over the whole rows that a tiling covers; the sums are those of the tile's columns.
void quantize_tiles(QuantizeBlock block, const Tiling& tiles, std::span<const float> weight,
                    std::span<const double> step, std::span<std::int8_t> out, std::span<std::int64_t> sum) noexcept {
  std::array<double, kBlockWidth> tiled_step;
  std::array<std::int64_t, kBlockWidth> tiled_sum{};
  repeat(step, tiles.n, tiled_step.data());
  block(weight.data(), tiles.n_rows, tiles.width(), tiles.width(), tiled_step.data(), out.data(), tiled_sum.data());
  for (std::size_t i = 0; i < tiles.width(); ++i) sum[i % tiles.n_channels] += tiled_sum[i];
}

void quantize_blocks(QuantizeBlock block, std::span<const float> weight, std::span<const double> step,
                     std::span<std::int8_t> out, std::span<std::int64_t> sum) noexcept {
  const std::size_t n_channels = step.size();
  for (std::size_t first = 0; first < n_channels; first += kBlockWidth) {
    block(weight.data() + first, weight.size() / n_channels, n_channels, std::min(kBlockWidth, n_channels - first),
          step.data() + first, out.data() + first, sum.data() + first);
  }
}

void quantize_with(QuantizeBlock block, std::span<const float> weight, std::span<const double> step,
                   std::span<std::int8_t> out, std::span<std::int64_t> sum) noexcept {
  std::fill(sum.begin(), sum.end(), std::int64_t{0});
  const Tiling tiles = tile(weight.size(), step.size());
  if (tiles.n == 1) return quantize_blocks(block, weight, step, out, sum);
  quantize_tiles(block, tiles, weight, step, out, sum);
  quantize_blocks(block, weight.subspan(tiles.covered()), step, out.subspan(tiles.covered()), sum);
}

void peak_tiles(const Tiling& tiles, std::span<const float> weight, std::span<std::uint32_t> peak) noexcept {
  std::array<std::uint32_t, kBlockWidth> tiled{};
  HWY_DYNAMIC_DISPATCH(peak_block)(weight.data(), tiles.n_rows, tiles.width(), tiles.width(), tiled.data());
  for (std::size_t i = 0; i < tiles.width(); ++i) {
    peak[i % tiles.n_channels] = std::max(peak[i % tiles.n_channels], tiled[i]);
  }
}

void peak_blocks(std::span<const float> weight, std::span<std::uint32_t> peak) noexcept {
  const std::size_t n_channels = peak.size();
  for (std::size_t first = 0; first < n_channels; first += kBlockWidth) {
    HWY_DYNAMIC_DISPATCH(peak_block)
    (weight.data() + first, weight.size() / n_channels, n_channels, std::min(kBlockWidth, n_channels - first),
     peak.data() + first);
  }
}

}  // namespace

void channel_peak_bits(std::span<const float> weight, std::span<std::uint32_t> peak_bits) noexcept {
  std::fill(peak_bits.begin(), peak_bits.end(), 0u);
  const Tiling tiles = tile(weight.size(), peak_bits.size());
  if (tiles.n > 1) {
    peak_tiles(tiles, weight, peak_bits);
    weight = weight.subspan(tiles.covered());
  }
  peak_blocks(weight, peak_bits);
}

void quantize_rows(std::span<const float> weight, std::span<const double> steps_per_unit,
                   std::span<std::int8_t> quantized, std::span<std::int64_t> sum) noexcept {
  quantize_with(&multiply, weight, steps_per_unit, quantized, sum);
}

void quantize_rows_by_unit(std::span<const float> weight, std::span<const double> unit,
                           std::span<std::int8_t> quantized, std::span<std::int64_t> sum) noexcept {
  quantize_with(&divide, weight, unit, quantized, sum);
}

void channel_abs_sums(std::span<const std::int8_t> weight, std::span<std::int64_t> sum) noexcept {
  std::fill(sum.begin(), sum.end(), std::int64_t{0});
  const std::size_t n_channels = sum.size();
  for (std::size_t first = 0; first < n_channels; first += kBlockWidth) {
    HWY_DYNAMIC_DISPATCH(abs_sum_block)
    (weight.data() + first, weight.size() / n_channels, n_channels, std::min(kBlockWidth, n_channels - first),
     sum.data() + first);
  }
}

namespace scalar {
namespace {

template <class Quantize>
void quantize_each(std::span<const float> weight, std::span<std::int8_t> out, std::span<std::int64_t> sum,
                   Quantize quantize) noexcept {
  std::fill(sum.begin(), sum.end(), std::int64_t{0});
  for (std::size_t i = 0; i < weight.size(); ++i) {
    const std::size_t c = i % sum.size();
    const double x = quantize(static_cast<double>(weight[i]), c);
    out[i] = static_cast<std::int8_t>(std::nearbyint(std::clamp(x, -128.0, 127.0)));
    sum[c] += out[i];
  }
}

}  // namespace

void channel_peak_bits(std::span<const float> weight, std::span<std::uint32_t> peak_bits) noexcept {
  std::fill(peak_bits.begin(), peak_bits.end(), 0u);
  for (std::size_t i = 0; i < weight.size(); ++i) {
    const std::size_t c = i % peak_bits.size();
    peak_bits[c] = std::max(peak_bits[c], std::bit_cast<std::uint32_t>(weight[i]) & 0x7fffffffu);
  }
}

void quantize_rows(std::span<const float> weight, std::span<const double> steps_per_unit,
                   std::span<std::int8_t> quantized, std::span<std::int64_t> sum) noexcept {
  quantize_each(weight, quantized, sum, [&](double w, std::size_t c) { return w * steps_per_unit[c]; });
}

void quantize_rows_by_unit(std::span<const float> weight, std::span<const double> unit,
                           std::span<std::int8_t> quantized, std::span<std::int64_t> sum) noexcept {
  quantize_each(weight, quantized, sum, [&](double w, std::size_t c) { return w / unit[c]; });
}

void channel_abs_sums(std::span<const std::int8_t> weight, std::span<std::int64_t> sum) noexcept {
  std::fill(sum.begin(), sum.end(), std::int64_t{0});
  for (std::size_t i = 0; i < weight.size(); ++i) sum[i % sum.size()] += std::abs(weight[i]);
}

}  // namespace scalar
}  // namespace weightmill
#endif  // HWY_ONCE
