#include "step_errors.h"

#include <algorithm>
#include <array>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "step_errors.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace weightmill {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kSums = 16;
using F32 = hn::CappedTag<float, kSums>;
using Floats = hn::Vec<F32>;

HWY_INLINE Floats squared_error(Floats x, Floats scale, Floats steps_per_unit, Floats lowest, Floats highest) {
  const Floats steps = hn::Min(hn::Max(hn::Mul(x, steps_per_unit), lowest), highest);
  const Floats error = hn::Sub(hn::Mul(hn::Round(steps), scale), x);
  return hn::Mul(error, error);
}

/// Adds whole stretches of sixteen to `sums` and returns how many x those are; the rest is the scalar twin's.
std::size_t run_simd(const float* x, float scale, float steps_per_unit, float lowest, float highest, std::size_t n,
                     float* sums) {
  const F32 f;
  const std::size_t lanes = hn::Lanes(f);
  const std::size_t end = n / kSums * kSums;
  for (std::size_t lane = 0; lane < kSums; lane += lanes) {
    Floats sum = hn::Zero(f);
    for (std::size_t i = lane; i < end; i += kSums) {
      sum = hn::Add(sum, squared_error(hn::LoadU(f, x + i), hn::Set(f, scale), hn::Set(f, steps_per_unit),
                                       hn::Set(f, lowest), hn::Set(f, highest)));
    }
    hn::StoreU(sum, f, sums + lane);
  }
  return end;
}

/// Returns how many columns were done. A column's weights stay in the first-level cache while all candidates see them.
std::size_t columns_simd(const float* x, std::size_t n_rows, std::size_t columns, const StepGrids& grids, float* sums) {
  const F32 f;
  const std::size_t lanes = hn::Lanes(f);
  std::size_t column = 0;
  for (; column + lanes <= columns; column += lanes) {
    for (std::size_t k = 0; k < grids.n_candidates; ++k) {
      const std::size_t at = k * grids.stride + column;
      const Floats scale = hn::LoadU(f, grids.scale.data() + at);
      const Floats steps_per_unit = hn::LoadU(f, grids.steps_per_unit.data() + at);
      const Floats lowest = hn::LoadU(f, grids.lowest.data() + at), highest = hn::LoadU(f, grids.highest.data() + at);
      Floats sum = hn::LoadU(f, sums + at);
      for (std::size_t row = 0; row < n_rows; ++row) {
        const Floats weights = hn::LoadU(f, x + row * columns + column);
        sum = hn::Add(sum, squared_error(weights, scale, steps_per_unit, lowest, highest));
      }
      hn::StoreU(sum, f, sums + at);
    }
  }
  return column;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weightmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weightmill {
namespace {

HWY_EXPORT(run_simd);
HWY_EXPORT(columns_simd);

constexpr std::size_t kPartialSums = 16;

/// The definition.
float squared_error(float x, float scale, float steps_per_unit, float lowest, float highest) noexcept {
  const float steps = std::min(std::max(x * steps_per_unit, lowest), highest);
  const float error = std::nearbyint(steps) * scale - x;
  return error * error;
}

float in_order(const std::array<float, kPartialSums>& sums) noexcept {
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

/// Columns from `first` on.
void add_columns(std::span<const float> x, std::size_t columns, std::size_t first, const StepGrids& grids,
                 std::span<float> sums) noexcept {
  for (std::size_t row = 0; row * columns < x.size(); ++row) {
    for (std::size_t k = 0; k < grids.n_candidates; ++k) {
      for (std::size_t column = first; column < columns; ++column) {
        const std::size_t at = k * grids.stride + column;
        sums[at] += squared_error(x[row * columns + column], grids.scale[at], grids.steps_per_unit[at],
                                  grids.lowest[at], grids.highest[at]);
      }
    }
  }
}

}  // namespace

float scalar::squared_errors_run(std::span<const float> x, float scale, float steps_per_unit, float lowest,
                                 float highest) noexcept {
  std::array<float, kPartialSums> sums{};
  for (std::size_t i = 0; i < x.size(); ++i)
    sums[i % kPartialSums] += squared_error(x[i], scale, steps_per_unit, lowest, highest);
  return in_order(sums);
}

void scalar::add_squared_errors(std::span<const float> x, std::size_t columns, const StepGrids& grids,
                                std::span<float> sums) noexcept {
  add_columns(x, columns, 0, grids, sums);
}

float squared_errors_run(std::span<const float> x, float scale, float steps_per_unit, float lowest,
                         float highest) noexcept {
  std::array<float, kPartialSums> sums{};
  const std::size_t done =
      HWY_DYNAMIC_DISPATCH(run_simd)(x.data(), scale, steps_per_unit, lowest, highest, x.size(), sums.data());
  for (std::size_t i = done; i < x.size(); ++i)
    sums[i - done] += squared_error(x[i], scale, steps_per_unit, lowest, highest);
  return in_order(sums);
}

void add_squared_errors(std::span<const float> x, std::size_t columns, const StepGrids& grids,
                        std::span<float> sums) noexcept {
  const std::size_t n_rows = columns == 0 ? 0 : x.size() / columns;
  const std::size_t done = HWY_DYNAMIC_DISPATCH(columns_simd)(x.data(), n_rows, columns, grids, sums.data());
  add_columns(x, columns, done, grids, sums);
}

}  // namespace weightmill
#endif
