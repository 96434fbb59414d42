#include "requantize.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "rounding_rules.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "requantize.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace weightmill {
namespace HWY_NAMESPACE {
namespace {

#undef WEIGHTMILL_KERNEL
#define WEIGHTMILL_KERNEL HWY_ATTR
#include "requantize_rows.inc"

RequantCounts requantize_i32(Rounding rule, const RequantLanes& lanes, const OutputCodes& output,
                             std::span<const std::int32_t> accumulators, std::int32_t* codes) {
  return requantize_with(rule, lanes, output, accumulators, codes);
}

RequantCounts requantize_i64(Rounding rule, const RequantLanes& lanes, const OutputCodes& output,
                             std::span<const std::int64_t> accumulators, std::int32_t* codes) {
  return requantize_with(rule, lanes, output, accumulators, codes);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weightmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weightmill {
namespace scalar {

#undef WEIGHTMILL_KERNEL
#define WEIGHTMILL_KERNEL
#include "requantize_rows.inc"

}  // namespace scalar

namespace {

constexpr std::array<std::string_view, 15> kRuleNames{
    "folded",          "after_shift",    "half_up",          "half_away", "half_even",
    "gemmlowp_double", "double_half_up", "double_by_eights", "int16x8",   "float_gain",
    "double_gain",     "ethos_u_double", "ethos_u_natural",  "openvino",  "openvino_dense"};
static_assert(kRuleNames.size() == static_cast<std::size_t>(Rounding::openvino_dense) + 1);

}  // namespace

std::span<const std::string_view> rounding_names() noexcept { return kRuleNames; }

std::string_view name_of(Rounding rule) noexcept { return kRuleNames[static_cast<std::size_t>(rule)]; }

std::optional<Rounding> rounding_named(std::string_view name) noexcept {
  const auto* found = std::ranges::find(kRuleNames, name);
  if (found == kRuleNames.end()) return std::nullopt;
  return static_cast<Rounding>(found - kRuleNames.begin());
}

RequantCounts requantize_scalar(Rounding rule, const RequantLanes& lanes, const OutputCodes& output,
                                std::span<const std::int32_t> accumulators, std::span<std::int32_t> codes) noexcept {
  return scalar::requantize_with(rule, lanes, output, accumulators, codes.data());
}

RequantCounts requantize_scalar(Rounding rule, const RequantLanes& lanes, const OutputCodes& output,
                                std::span<const std::int64_t> accumulators, std::span<std::int32_t> codes) noexcept {
  return scalar::requantize_with(rule, lanes, output, accumulators, codes.data());
}

HWY_EXPORT(requantize_i32);
HWY_EXPORT(requantize_i64);

RequantCounts requantize(Rounding rule, const RequantLanes& lanes, const OutputCodes& output,
                         std::span<const std::int32_t> accumulators, std::span<std::int32_t> codes) noexcept {
  return HWY_DYNAMIC_DISPATCH(requantize_i32)(rule, lanes, output, accumulators, codes.data());
}

RequantCounts requantize(Rounding rule, const RequantLanes& lanes, const OutputCodes& output,
                         std::span<const std::int64_t> accumulators, std::span<std::int32_t> codes) noexcept {
  return HWY_DYNAMIC_DISPATCH(requantize_i64)(rule, lanes, output, accumulators, codes.data());
}

}  // namespace weightmill
#endif
