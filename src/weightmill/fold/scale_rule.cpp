#include "scale_rule.h"

namespace weightmill {

ScaleRule::ScaleRule(FoldSemantics semantics, DType type, std::int64_t levels, std::int32_t low_code) noexcept
    : semantics_(semantics),
      stored_{type, semantics == FoldSemantics::openvino},
      judged_(semantics == FoldSemantics::strict ? Precision{} : stored_),
      steps_(static_cast<float>(levels - 1)),
      low_code_(static_cast<float>(low_code)) {}

ScaleAndZero ScaleRule::operator()(float output_low, float output_high) const noexcept {
  // The Python pass computes in the stored type from the start, the others in float32.
  const Precision each = semantics_ == FoldSemantics::mo2021 ? stored_ : Precision{};
  const float scale = each.round(each.round(output_high - output_low) / steps_);
  const float zero_point = scale == 0 ? 0 : each.round(low_code_ - each.round(output_low / scale));
  return {.scale = stored_.round(scale),
          .zero_point = stored_.round(zero_point),
          .exact_scale = scale,
          .exact_zero_point = judged_.round(zero_point)};
}

}  // namespace weightmill
