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

struct RuleName {
  Rounding rule;
  std::string_view name;
};
constexpr std::array kRuleNames{
    RuleName{Rounding::folded, "folded"},
    RuleName{Rounding::after_shift, "after_shift"},
    RuleName{Rounding::half_up, "half_up"},
    RuleName{Rounding::half_away, "half_away"},
    RuleName{Rounding::half_even, "half_even"},
    RuleName{Rounding::gemmlowp_double, "gemmlowp_double"},
    RuleName{Rounding::double_half_up, "double_half_up"},
    RuleName{Rounding::int16x8, "int16x8"},
    RuleName{Rounding::float_gain, "float_gain"},
    RuleName{Rounding::ethos_u_double, "ethos_u_double"},
    RuleName{Rounding::ethos_u_natural, "ethos_u_natural"},
};

}  // namespace

std::string_view name_of(Rounding rule) noexcept {
  return std::ranges::find(kRuleNames, rule, &RuleName::rule)->name;
}

std::optional<Rounding> rounding_named(std::string_view name) noexcept {
  const auto* found = std::ranges::find(kRuleNames, name, &RuleName::name);
  return found == kRuleNames.end() ? std::nullopt : std::optional(found->rule);
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
