#include "fake_quantize.h"

#include <cmath>
#include <cstring>

#include <weightmill/base/half.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fake_quantize.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace weightmill {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
// One lane cannot be cut into bytes: the scalar twins do all of it.
std::size_t quantize_run_simd(const std::uint8_t*, const CodeLimits&, const CodeRule&, std::size_t, std::uint8_t*,
                              bool&) {
  return 0;
}
std::size_t quantize_each_simd(const std::uint8_t*, const CodeLimitRows&, const CodeRule&, std::size_t, std::uint8_t*,
                               bool&) {
  return 0;
}
std::size_t widen_f16_simd(const std::uint8_t*, std::size_t, float*) { return 0; }
std::size_t widen_bf16_simd(const std::uint8_t*, std::size_t, float*) { return 0; }
std::size_t pack_nibbles_simd(const std::uint8_t*, std::size_t, bool, std::uint8_t*) { return 0; }
#else

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::ScalableTag<std::int32_t>;
using Floats = hn::Vec<F32>;

HWY_INLINE Floats load_floats(const std::uint8_t* bytes) {
  const hn::Repartition<std::uint8_t, F32> bytes_tag;
  return hn::BitCast(F32(), hn::LoadU(bytes_tag, bytes));
}

// Better targets have smaller numbers.
#undef WEIGHTMILL_CONVERTS_F16
#if HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
#define WEIGHTMILL_CONVERTS_F16 1
#else
#define WEIGHTMILL_CONVERTS_F16 0
#endif

/// Each lane rounded to the nearest float16, as from_f16(to_f16(x)).
HWY_INLINE Floats to_f16_grid(Floats x) {
  const F32 f;
#if WEIGHTMILL_CONVERTS_F16
  return hn::PromoteTo(f, hn::DemoteTo(hn::Rebind<hwy::float16_t, F32>(), x));
#else
  const I32 i;
  const auto bits = hn::BitCast(i, x);
  const auto sign = hn::And(bits, hn::Set(i, static_cast<std::int32_t>(0x80000000u)));
  const auto magnitude = hn::Xor(bits, sign);
  // 13 of float32's 23 mantissa bits go: add just under a half, and one more where the kept part is odd.
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(i, 1));
  auto rounded = hn::AndNot(hn::Set(i, 0x1fff), hn::Add(magnitude, hn::Add(odd, hn::Set(i, 0xfff))));
  // Below 2^-14 float16 counts in steps of 2^-24, which is what a float32 of [0.5, 1) counts in.
  const auto half = hn::Set(f, 0.5f);
  const auto small = hn::BitCast(i, hn::Sub(hn::Add(hn::BitCast(f, magnitude), half), half));
  rounded = hn::IfThenElse(hn::Lt(magnitude, hn::Set(i, 0x38800000)), small, rounded);
  rounded = hn::IfThenElse(hn::Gt(rounded, hn::Set(i, 0x477fffff)), hn::Set(i, 0x7f800000), rounded);
  rounded = hn::IfThenElse(hn::Gt(magnitude, hn::Set(i, 0x7f800000)), magnitude, rounded);
  return hn::BitCast(f, hn::Or(rounded, sign));
#endif
}

/// What is the same for all weights of a call.
template <bool kHalfUp, bool kInF16>
struct Coder {
  Floats steps;
  hn::Vec<I32> low;
  hn::Mask<F32> nans;

  HWY_INLINE explicit Coder(const CodeRule& rule)
      : steps(hn::Set(F32(), rule.steps)),
        low(hn::Set(I32(), rule.low)),
        nans(hn::Ne(hn::Zero(F32()), hn::Zero(F32()))) {}

  HWY_INLINE static Floats grid(Floats x) { return kInF16 ? to_f16_grid(x) : x; }
  HWY_INLINE static Floats rounded(Floats x) {
    return kHalfUp ? hn::Floor(hn::Add(x, hn::Set(F32(), 0.5f))) : hn::Round(x);
  }

  HWY_INLINE void code(const std::uint8_t* weight, Floats below, Floats above, Floats origin, Floats range,
                       std::uint8_t* out) {
    const Floats w = load_floats(weight);
    const Floats quotient = grid(hn::Div(grid(hn::Sub(w, origin)), range));
    Floats step = rounded(grid(hn::Mul(quotient, steps)));
    step = hn::IfThenElse(hn::Gt(w, above), steps, step);
    step = hn::IfThenZeroElse(hn::Le(w, below), step);
    const auto nan = hn::IsNaN(step);
    nans = hn::Or(nans, nan);
    const auto whole = hn::Add(hn::ConvertTo(I32(), hn::IfThenZeroElse(nan, step)), low);
    const auto codes = hn::IfThenZeroElse(hn::RebindMask(I32(), nan), whole);
    const hn::Rebind<std::uint8_t, F32> out_tag;
    hn::StoreU(hn::TruncateTo(out_tag, hn::BitCast(hn::ScalableTag<std::uint32_t>(), codes)), out_tag, out);
  }
};

template <bool kHalfUp, bool kInF16>
HWY_NOINLINE std::size_t run_loop(const std::uint8_t* weights, const CodeLimits& limits, const CodeRule& rule,
                                  std::size_t n, std::uint8_t* codes, bool& saw_nan) {
  const F32 f;
  const std::size_t lanes = hn::Lanes(f);
  Coder<kHalfUp, kInF16> coder(rule);
  const auto below = hn::Set(f, limits.below), above = hn::Set(f, limits.above);
  const auto origin = hn::Set(f, limits.origin), range = hn::Set(f, limits.range);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) coder.code(weights + 4 * i, below, above, origin, range, codes + i);
  saw_nan = !hn::AllFalse(f, coder.nans);
  return i;
}

template <bool kHalfUp, bool kInF16>
HWY_NOINLINE std::size_t each_loop(const std::uint8_t* weights, const CodeLimitRows& limits, const CodeRule& rule,
                                   std::size_t n, std::uint8_t* codes, bool& saw_nan) {
  const F32 f;
  const std::size_t lanes = hn::Lanes(f);
  Coder<kHalfUp, kInF16> coder(rule);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    coder.code(weights + 4 * i, hn::LoadU(f, limits.below.data() + i), hn::LoadU(f, limits.above.data() + i),
               hn::LoadU(f, limits.origin.data() + i), hn::LoadU(f, limits.range.data() + i), codes + i);
  }
  saw_nan = !hn::AllFalse(f, coder.nans);
  return i;
}

/// Returns how many weights were done; the last few are the scalar twin's.
std::size_t quantize_run_simd(const std::uint8_t* weights, const CodeLimits& limits, const CodeRule& rule,
                              std::size_t n, std::uint8_t* codes, bool& saw_nan) {
  const auto loop = rule.in_f16 ? (rule.half_up ? run_loop<true, true> : run_loop<false, true>)
                                : (rule.half_up ? run_loop<true, false> : run_loop<false, false>);
  return loop(weights, limits, rule, n, codes, saw_nan);
}

std::size_t quantize_each_simd(const std::uint8_t* weights, const CodeLimitRows& limits, const CodeRule& rule,
                               std::size_t n, std::uint8_t* codes, bool& saw_nan) {
  const auto loop = rule.in_f16 ? (rule.half_up ? each_loop<true, true> : each_loop<false, true>)
                                : (rule.half_up ? each_loop<true, false> : each_loop<false, false>);
  return loop(weights, limits, rule, n, codes, saw_nan);
}

#if WEIGHTMILL_CONVERTS_F16
std::size_t widen_f16_simd(const std::uint8_t* in, std::size_t n, float* out) {
  const F32 f;
  const hn::Rebind<hwy::float16_t, F32> half;
  const hn::Repartition<std::uint8_t, decltype(half)> bytes;
  const std::size_t lanes = hn::Lanes(f);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::PromoteTo(f, hn::BitCast(half, hn::LoadU(bytes, in + 2 * i))), f, out + i);
  return i;
}
#else
/// float16 to float32 in integer and float32 operations that every target has.
std::size_t widen_f16_simd(const std::uint8_t* in, std::size_t n, float* out) {
  const F32 f;
  const hn::ScalableTag<std::uint32_t> u;
  const hn::Rebind<std::uint16_t, F32> half;
  const hn::Repartition<std::uint8_t, decltype(half)> bytes;
  const std::size_t lanes = hn::Lanes(f);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto bits = hn::PromoteTo(u, hn::BitCast(half, hn::LoadU(bytes, in + 2 * i)));
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(u, 0x8000)));
    const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(u, 0x7fff)));
    // Moves the exponent's bias from 15 to 127 exactly, subnormals included; infinity and NaN are put right after.
    const auto scaled = hn::BitCast(u, hn::Mul(hn::BitCast(f, magnitude), hn::Set(f, 0x1p112f)));
    const auto special = hn::Or(magnitude, hn::Set(u, 0x7f800000));
    const auto is_special = hn::Gt(magnitude, hn::Set(u, 0x0f7fffff));
    hn::StoreU(hn::BitCast(f, hn::Or(hn::IfThenElse(is_special, special, scaled), sign)), f, out + i);
  }
  return i;
}
#endif

std::size_t widen_bf16_simd(const std::uint8_t* in, std::size_t n, float* out) {
  const F32 f;
  const hn::ScalableTag<std::uint32_t> u;
  const hn::Rebind<std::uint16_t, F32> half;
  const hn::Repartition<std::uint8_t, decltype(half)> bytes;
  const std::size_t lanes = hn::Lanes(f);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto bits = hn::PromoteTo(u, hn::BitCast(half, hn::LoadU(bytes, in + 2 * i)));
    hn::StoreU(hn::BitCast(f, hn::ShiftLeft<16>(bits)), f, out + i);
  }
  return i;
}

/// Reads 16-bit pairs of codes and keeps one byte of each.
std::size_t pack_nibbles_simd(const std::uint8_t* codes, std::size_t n, bool first_high, std::uint8_t* out) {
  const hn::ScalableTag<std::uint16_t> pairs;
  const hn::Repartition<std::uint8_t, decltype(pairs)> bytes;
  const hn::Rebind<std::uint8_t, decltype(pairs)> packed;
  const std::size_t step = 2 * hn::Lanes(pairs);
  std::size_t i = 0;
  for (; i + step <= n; i += step) {
    const auto both = hn::And(hn::BitCast(pairs, hn::LoadU(bytes, codes + i)), hn::Set(pairs, 0x0f0f));
    const auto byte = first_high ? hn::Or(hn::ShiftLeft<4>(both), hn::ShiftRight<8>(both))
                                 : hn::Or(both, hn::ShiftRight<4>(both));
    const auto low = hn::And(byte, hn::Set(pairs, 0xff));
    hn::StoreU(hn::DemoteTo(packed, hn::BitCast(hn::ScalableTag<std::int16_t>(), low)), packed, out + i / 2);
  }
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

float load_float(const std::uint8_t* bytes) noexcept {
  float value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

std::uint16_t load_half(const std::uint8_t* bytes) noexcept {
  std::uint16_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

bool quantize_one(float weight, const CodeLimits& limits, const CodeRule& rule, std::uint8_t& code) noexcept {
  const float step = quantize_step(weight, limits, rule);
  const bool nan = std::isnan(step);
  code = nan ? std::uint8_t{0} : static_cast<std::uint8_t>(static_cast<std::int32_t>(step) + rule.low);
  return nan;
}

HWY_EXPORT(quantize_run_simd);
HWY_EXPORT(quantize_each_simd);
HWY_EXPORT(widen_f16_simd);
HWY_EXPORT(widen_bf16_simd);
HWY_EXPORT(pack_nibbles_simd);

CodeLimitRows rest_of(const CodeLimitRows& limits, std::size_t first) noexcept {
  return {limits.below.subspan(first), limits.above.subspan(first), limits.origin.subspan(first),
          limits.range.subspan(first)};
}

}  // namespace

float quantize_step(float weight, const CodeLimits& limits, const CodeRule& rule) noexcept {
  const auto grid = [&](float x) { return rule.in_f16 ? from_f16(to_f16(x)) : x; };
  if (weight <= limits.below) return 0;
  if (weight > limits.above) return rule.steps;
  const float scaled = grid(grid(grid(weight - limits.origin) / limits.range) * rule.steps);
  return rule.half_up ? std::floor(scaled + 0.5f) : std::nearbyint(scaled);
}

bool quantize_run_scalar(const std::uint8_t* weights, const CodeLimits& limits, const CodeRule& rule,
                         std::span<std::uint8_t> codes) noexcept {
  bool saw_nan = false;
  for (std::size_t i = 0; i < codes.size(); ++i)
    saw_nan |= quantize_one(load_float(weights + 4 * i), limits, rule, codes[i]);
  return saw_nan;
}

bool quantize_each_scalar(const std::uint8_t* weights, const CodeLimitRows& limits, const CodeRule& rule,
                          std::span<std::uint8_t> codes) noexcept {
  bool saw_nan = false;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const CodeLimits own{limits.below[i], limits.above[i], limits.origin[i], limits.range[i]};
    saw_nan |= quantize_one(load_float(weights + 4 * i), own, rule, codes[i]);
  }
  return saw_nan;
}

bool quantize_run(const std::uint8_t* weights, const CodeLimits& limits, const CodeRule& rule,
                  std::span<std::uint8_t> codes) noexcept {
  bool saw_nan = false;
  const std::size_t done =
      HWY_DYNAMIC_DISPATCH(quantize_run_simd)(weights, limits, rule, codes.size(), codes.data(), saw_nan);
  return quantize_run_scalar(weights + 4 * done, limits, rule, codes.subspan(done)) || saw_nan;
}

bool quantize_each(const std::uint8_t* weights, const CodeLimitRows& limits, const CodeRule& rule,
                   std::span<std::uint8_t> codes) noexcept {
  bool saw_nan = false;
  const std::size_t done =
      HWY_DYNAMIC_DISPATCH(quantize_each_simd)(weights, limits, rule, codes.size(), codes.data(), saw_nan);
  return quantize_each_scalar(weights + 4 * done, rest_of(limits, done), rule, codes.subspan(done)) || saw_nan;
}

void widen_f16(const std::uint8_t* in, std::span<float> out) noexcept {
  std::size_t i = HWY_DYNAMIC_DISPATCH(widen_f16_simd)(in, out.size(), out.data());
  for (; i < out.size(); ++i) out[i] = from_f16(load_half(in + 2 * i));
}

void widen_bf16(const std::uint8_t* in, std::span<float> out) noexcept {
  std::size_t i = HWY_DYNAMIC_DISPATCH(widen_bf16_simd)(in, out.size(), out.data());
  for (; i < out.size(); ++i) out[i] = from_bf16(load_half(in + 2 * i));
}

void pack_nibbles(std::span<const std::uint8_t> codes, bool first_high, std::uint8_t* out) noexcept {
  const std::size_t n = codes.size();
  for (std::size_t i = HWY_DYNAMIC_DISPATCH(pack_nibbles_simd)(codes.data(), n, first_high, out); i < n; i += 2) {
    const unsigned first = codes[i] & 15u;
    const unsigned second = i + 1 < n ? codes[i + 1] & 15u : 0u;
    out[i / 2] = static_cast<std::uint8_t>(first_high ? first << 4 | second : second << 4 | first);
  }
}

}  // namespace weightmill
#endif
