#include "index_sums.h"

#include <algorithm>
#include <cassert>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "index_sums.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#ifndef WEIGHTMILL_INDEX_SUMS_ONCE
#define WEIGHTMILL_INDEX_SUMS_ONCE
namespace weightmill {

/// Adds one weight to `sums`.
inline void add_weight(int weight, unsigned offset, IndexSums& sums) noexcept {
  const auto magnitude = static_cast<unsigned>(weight < 0 ? -weight : weight);
  const unsigned code = 2 * magnitude + (weight < 0 ? 1 : 0);
  const unsigned value = code < offset ? 0 : code - offset;
  ++sums.n;
  sums.n_zero += weight == 0 ? 1 : 0;
  for (std::size_t d = 0; d < sums.quotients.size(); ++d) sums.quotients[d] += value >> d;
  for (std::size_t d = 0; d < sums.above.size(); ++d) sums.above[d] += value >> d != 0 ? 1 : 0;
  sums.largest = static_cast<std::uint16_t>(std::max<unsigned>(sums.largest, value));
}

}  // namespace weightmill
#endif

HWY_BEFORE_NAMESPACE();
namespace weightmill {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
IndexSums sums(std::span<const std::int16_t> weights, unsigned offset) { return index_sums_scalar(weights, offset); }
#else

namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::ScalableTag<std::uint16_t>;
using Signed = hn::RebindToSigned<Words>;
using Sum = hn::Vec<Words>;

/// Lanes of at most 1024 / 8 values below 512 each, 16 bits wide.
HWY_INLINE std::uint32_t total(Sum lanes) {
  const hn::RepartitionToWide<Words> wide;
  const auto low = hn::And(hn::BitCast(wide, lanes), hn::Set(wide, 0xffff));
  const auto high = hn::ShiftRight<16>(hn::BitCast(wide, lanes));
  return hn::GetLane(hn::SumOfLanes(wide, hn::Add(low, high)));
}

/// One for each lane that is not zero, taken off: lanes count downwards from 2^16.
HWY_INLINE Sum count_down(Sum count, Sum value) {
  const Words d;
  return hn::Add(count, hn::VecFromMask(d, hn::Gt(value, hn::Zero(d))));
}

HWY_INLINE std::uint32_t total_down(Sum count) { return total(hn::Sub(hn::Zero(Words()), count)); }

IndexSums sums(std::span<const std::int16_t> weights, unsigned offset) {
  const Words d;
  const Signed ds;
  const std::size_t step = hn::Lanes(d);
  const auto off = hn::Set(d, static_cast<std::uint16_t>(offset));
  Sum q0 = hn::Zero(d), q1 = q0, q2 = q0, q3 = q0, q4 = q0, q5 = q0, q6 = q0;
  Sum a0 = q0, a1 = q0, a2 = q0, a3 = q0, a4 = q0, a5 = q0, not_zero = q0, largest = q0;
  std::size_t i = 0;
  for (; i + step <= weights.size(); i += step) {
    const auto weight = hn::LoadU(ds, weights.data() + i);
    const auto sign = hn::ShiftRight<15>(hn::BitCast(d, weight));
    const auto code = hn::Add(hn::ShiftLeft<1>(hn::BitCast(d, hn::Abs(weight))), sign);
    const auto value = hn::SaturatedSub(code, off);
    not_zero = count_down(not_zero, code);
    largest = hn::Max(largest, value);
    const auto v1 = hn::ShiftRight<1>(value), v2 = hn::ShiftRight<2>(value), v3 = hn::ShiftRight<3>(value);
    const auto v4 = hn::ShiftRight<4>(value), v5 = hn::ShiftRight<5>(value), v6 = hn::ShiftRight<6>(value);
    q0 = hn::Add(q0, value), q1 = hn::Add(q1, v1), q2 = hn::Add(q2, v2), q3 = hn::Add(q3, v3);
    q4 = hn::Add(q4, v4), q5 = hn::Add(q5, v5), q6 = hn::Add(q6, v6);
    a0 = count_down(a0, value), a1 = count_down(a1, v1), a2 = count_down(a2, v2);
    a3 = count_down(a3, v3), a4 = count_down(a4, v4), a5 = count_down(a5, v5);
  }
  IndexSums out;
  out.n = static_cast<std::uint32_t>(i);
  out.n_zero = out.n - total_down(not_zero);
  out.quotients = {total(q0), total(q1), total(q2), total(q3), total(q4), total(q5), total(q6)};
  out.above = {total_down(a0), total_down(a1), total_down(a2), total_down(a3), total_down(a4), total_down(a5)};
  out.largest = i == 0 ? 0 : hn::GetLane(hn::MaxOfLanes(d, largest));
  for (; i < weights.size(); ++i) add_weight(weights[i], offset, out);
  return out;
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weightmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weightmill {

IndexSums index_sums_scalar(std::span<const std::int16_t> weights, unsigned offset) noexcept {
  IndexSums out;
  for (const std::int16_t weight : weights) add_weight(weight, offset, out);
  return out;
}

HWY_EXPORT(sums);

IndexSums index_sums(std::span<const std::int16_t> weights, unsigned offset) noexcept {
  assert(weights.size() <= kMaxSumWeights && offset <= 2);
  return HWY_DYNAMIC_DISPATCH(sums)(weights, offset);
}

}  // namespace weightmill
#endif
