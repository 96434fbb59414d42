#include "quantize_linear.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize_linear.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace weightmill {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
// One lane cannot be cut in half: the scalar twins do all of it.
std::size_t run_simd(const float*, float, std::int32_t, CodeRange, std::size_t, std::uint16_t*, bool&) { return 0; }
std::size_t each_simd(const float*, const float*, const std::int32_t*, CodeRange, std::size_t, std::uint16_t*, bool&) {
  return 0;
}
std::size_t distance_run_simd(const float*, const std::uint16_t*, double, std::int32_t, CodeRange, std::size_t,
                              double&) {
  return 0;
}
std::size_t distance_each_simd(const float*, const std::uint16_t*, const double*, const std::int32_t*, CodeRange,
                               std::size_t, double&) {
  return 0;
}
#else

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::ScalableTag<std::int32_t>;
using Floats = hn::Vec<F32>;
using Ints = hn::Vec<I32>;

HWY_INLINE void put_codes(Floats x, Floats scale, Floats lowest, Floats highest, Ints zero_point, std::uint16_t* out) {
  const Floats clamped = hn::Min(hn::Max(hn::Div(x, scale), lowest), highest);
  const auto codes = hn::Add(hn::ConvertTo(I32(), hn::Round(clamped)), zero_point);
  const hn::Rebind<std::uint16_t, F32> out_tag;
  hn::StoreU(hn::TruncateTo(out_tag, hn::BitCast(hn::ScalableTag<std::uint32_t>(), codes)), out_tag, out);
}

/// Returns how many were done; the last few are the scalar twin's.
std::size_t run_simd(const float* x, float scale, std::int32_t zero_point, CodeRange range, std::size_t n,
                     std::uint16_t* codes, bool& saw_nan) {
  const F32 f;
  const std::size_t lanes = hn::Lanes(f);
  const Floats scales = hn::Set(f, scale);
  const Floats lowest = hn::Set(f, static_cast<float>(range.low - zero_point));
  const Floats highest = hn::Set(f, static_cast<float>(range.high - zero_point));
  const Ints zero_points = hn::Set(I32(), zero_point);
  auto nans = hn::Ne(hn::Zero(f), hn::Zero(f));
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Floats values = hn::LoadU(f, x + i);
    nans = hn::Or(nans, hn::IsNaN(values));
    put_codes(values, scales, lowest, highest, zero_points, codes + i);
  }
  saw_nan = !hn::AllFalse(f, nans);
  return i;
}

std::size_t each_simd(const float* x, const float* scale, const std::int32_t* zero_point, CodeRange range,
                      std::size_t n, std::uint16_t* codes, bool& saw_nan) {
  const F32 f;
  const I32 d;
  const std::size_t lanes = hn::Lanes(f);
  auto nans = hn::Ne(hn::Zero(f), hn::Zero(f));
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Floats values = hn::LoadU(f, x + i);
    const Ints zero_points = hn::LoadU(d, zero_point + i);
    const Floats lowest = hn::ConvertTo(f, hn::Sub(hn::Set(d, range.low), zero_points));
    const Floats highest = hn::ConvertTo(f, hn::Sub(hn::Set(d, range.high), zero_points));
    nans = hn::Or(nans, hn::IsNaN(values));
    put_codes(values, hn::LoadU(f, scale + i), lowest, highest, zero_points, codes + i);
  }
  saw_nan = !hn::AllFalse(f, nans);
  return i;
}

using F64 = hn::ScalableTag<double>;
using Doubles = hn::Vec<F64>;
using HalfI32 = hn::Rebind<std::int32_t, F64>;

/// The larger of `largest` and the distances of as many x as a vector of float64 has lanes.
HWY_INLINE Doubles with_distances(Doubles largest, const float* x, const std::uint16_t* codes, Doubles steps_per_unit,
                                  hn::Vec<HalfI32> zero_point, CodeRange range) {
  const F64 d;
  const HalfI32 half;
  const hn::Rebind<float, F64> floats;
  const hn::Rebind<std::uint16_t, F64> shorts;
  auto code = hn::BitCast(half, hn::PromoteTo(hn::Rebind<std::uint32_t, F64>(), hn::LoadU(shorts, codes)));
  if (range.low < 0) code = hn::ShiftRight<16>(hn::ShiftLeft<16>(code));
  const Doubles steps = hn::Mul(hn::PromoteTo(d, hn::LoadU(floats, x)), steps_per_unit);
  const Doubles value = hn::PromoteTo(d, code);
  const Doubles beyond = hn::Sub(steps, hn::PromoteTo(d, hn::Sub(code, zero_point)));
  const Doubles above = hn::IfThenZeroElse(hn::Eq(value, hn::Set(d, range.high)), beyond);
  const Doubles below = hn::IfThenZeroElse(hn::Eq(value, hn::Set(d, range.low)), hn::Neg(beyond));
  return hn::Max(largest, hn::Max(above, below));
}

std::size_t distance_run_simd(const float* x, const std::uint16_t* codes, double steps_per_unit,
                              std::int32_t zero_point, CodeRange range, std::size_t n, double& largest) {
  const F64 d;
  const std::size_t lanes = hn::Lanes(d);
  const Doubles scale = hn::Set(d, steps_per_unit);
  const auto zero_points = hn::Set(HalfI32(), zero_point);
  Doubles most = hn::Zero(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) most = with_distances(most, x + i, codes + i, scale, zero_points, range);
  largest = hn::GetLane(hn::MaxOfLanes(d, most));
  return i;
}

std::size_t distance_each_simd(const float* x, const std::uint16_t* codes, const double* steps_per_unit,
                               const std::int32_t* zero_point, CodeRange range, std::size_t n, double& largest) {
  const F64 d;
  const std::size_t lanes = hn::Lanes(d);
  Doubles most = hn::Zero(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    most = with_distances(most, x + i, codes + i, hn::LoadU(d, steps_per_unit + i),
                          hn::LoadU(HalfI32(), zero_point + i), range);
  }
  largest = hn::GetLane(hn::MaxOfLanes(d, most));
  return i;
}

#endif
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weightmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weightmill {
namespace {

HWY_EXPORT(run_simd);
HWY_EXPORT(each_simd);
HWY_EXPORT(distance_run_simd);
HWY_EXPORT(distance_each_simd);

/// The definition. Requires that x is no NaN.
std::uint16_t code_of(float x, float scale, std::int32_t zero_point, CodeRange range) noexcept {
  const auto lowest = static_cast<float>(range.low - zero_point);
  const auto highest = static_cast<float>(range.high - zero_point);
  const float clamped = std::min(std::max(x / scale, lowest), highest);
  return static_cast<std::uint16_t>(static_cast<std::int32_t>(std::nearbyint(clamped)) + zero_point);
}

}  // namespace

double scalar::linear_distance_run(std::span<const float> x, std::span<const std::uint16_t> codes,
                                   double steps_per_unit, std::int32_t zero_point, CodeRange range) noexcept {
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int32_t code = range.low < 0 ? static_cast<std::int16_t>(codes[i]) : static_cast<std::int32_t>(codes[i]);
    const double beyond = static_cast<double>(x[i]) * steps_per_unit - (code - zero_point);
    if (code != range.high) largest = std::max(largest, beyond);
    if (code != range.low) largest = std::max(largest, -beyond);
  }
  return largest;
}

double scalar::linear_distance_each(std::span<const float> x, std::span<const std::uint16_t> codes,
                                    std::span<const double> steps_per_unit, std::span<const std::int32_t> zero_point,
                                    CodeRange range) noexcept {
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    largest = std::max(largest, scalar::linear_distance_run(x.subspan(i, 1), codes.subspan(i, 1), steps_per_unit[i],
                                                            zero_point[i], range));
  }
  return largest;
}

double linear_distance_run(std::span<const float> x, std::span<const std::uint16_t> codes, double steps_per_unit,
                           std::int32_t zero_point, CodeRange range) noexcept {
  double largest = 0;
  const std::size_t done = HWY_DYNAMIC_DISPATCH(distance_run_simd)(x.data(), codes.data(), steps_per_unit, zero_point,
                                                                   range, x.size(), largest);
  return std::max(largest,
                  scalar::linear_distance_run(x.subspan(done), codes.subspan(done), steps_per_unit, zero_point, range));
}

double linear_distance_each(std::span<const float> x, std::span<const std::uint16_t> codes,
                            std::span<const double> steps_per_unit, std::span<const std::int32_t> zero_point,
                            CodeRange range) noexcept {
  double largest = 0;
  const std::size_t done = HWY_DYNAMIC_DISPATCH(distance_each_simd)(x.data(), codes.data(), steps_per_unit.data(),
                                                                    zero_point.data(), range, x.size(), largest);
  return std::max(largest, scalar::linear_distance_each(x.subspan(done), codes.subspan(done),
                                                        steps_per_unit.subspan(done), zero_point.subspan(done), range));
}

bool scalar::quantize_linear_run(std::span<const float> x, float scale, std::int32_t zero_point, CodeRange range,
                                 std::span<std::uint16_t> codes) noexcept {
  bool saw_nan = false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool nan = std::isnan(x[i]);
    saw_nan |= nan;
    codes[i] = nan ? std::uint16_t{0} : code_of(x[i], scale, zero_point, range);
  }
  return saw_nan;
}

bool scalar::quantize_linear_each(std::span<const float> x, std::span<const float> scale,
                                  std::span<const std::int32_t> zero_point, CodeRange range,
                                  std::span<std::uint16_t> codes) noexcept {
  bool saw_nan = false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    saw_nan |= scalar::quantize_linear_run(x.subspan(i, 1), scale[i], zero_point[i], range, codes.subspan(i, 1));
  }
  return saw_nan;
}

bool quantize_linear_run(std::span<const float> x, float scale, std::int32_t zero_point, CodeRange range,
                         std::span<std::uint16_t> codes) noexcept {
  bool saw_nan = false;
  const std::size_t done =
      HWY_DYNAMIC_DISPATCH(run_simd)(x.data(), scale, zero_point, range, x.size(), codes.data(), saw_nan);
  return scalar::quantize_linear_run(x.subspan(done), scale, zero_point, range, codes.subspan(done)) || saw_nan;
}

bool quantize_linear_each(std::span<const float> x, std::span<const float> scale,
                          std::span<const std::int32_t> zero_point, CodeRange range,
                          std::span<std::uint16_t> codes) noexcept {
  bool saw_nan = false;
  const std::size_t done = HWY_DYNAMIC_DISPATCH(each_simd)(x.data(), scale.data(), zero_point.data(), range, x.size(),
                                                           codes.data(), saw_nan);
  return scalar::quantize_linear_each(x.subspan(done), scale.subspan(done), zero_point.subspan(done), range,
                                      codes.subspan(done)) ||
         saw_nan;
}

}  // namespace weightmill
#endif
