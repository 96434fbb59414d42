#include "plan_invariants.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace weightmill {
namespace {

constexpr double kI32Low = std::numeric_limits<std::int32_t>::min();
constexpr double kI32High = std::numeric_limits<std::int32_t>::max();

class PlanCheck {
 public:
  explicit PlanCheck(const QuantizedConv& plan) : plan_(plan), tolerance_(plan.exact_gain ? 1e-12 : 0x1p-7) {}

  std::vector<std::string> run() {
    if (!check_sizes()) return std::move(faults_);
    check_weights();
    check_output();
    for (std::size_t l = 0; l < n_lanes_; ++l) {
      check_scales(l);
      if (plan_.requant == Requant::mult31) {
        check_engine_gain(l);
      } else {
        check_shift(l);
        check_gain(l);
      }
    }
    return std::move(faults_);
  }

 private:
  bool check_sizes() {
    if (plan_.weight_shape.size() < 5) return expect(false, "weight shape has no channel axes");
    std::size_t n_weights = 1;
    for (const std::int64_t extent : plan_.weight_shape) n_weights *= static_cast<std::size_t>(extent);
    n_channels_ = static_cast<std::size_t>(plan_.weight_shape.back() * plan_.weight_shape.rbegin()[1]);
    n_lanes_ = plan_.per_channel ? n_channels_ : 1;
    const bool mult31 = plan_.requant == Requant::mult31;
    const bool right = plan_.weight.size() == n_weights && plan_.bias.size() == n_channels_ &&
                       plan_.gain.size() == (mult31 ? 0 : n_lanes_) &&
                       plan_.weight_scale.size() == (mult31 ? n_channels_ : 0) &&
                       plan_.intrinsic_shift.size() == n_lanes_ && plan_.weight_steps_per_unit.size() == n_lanes_ &&
                       plan_.bias_steps_per_unit.size() == n_lanes_ && plan_.weight_drop.size() == n_lanes_;
    return expect(right, "an array does not fit the weight shape");
  }

  void check_weights() {
    std::vector<std::int8_t> low(n_channels_), high(n_channels_);
    for (std::size_t i = 0; i < plan_.weight.size(); ++i) {
      const std::size_t c = i % n_channels_;
      low[c] = std::min(low[c], plan_.weight[i]);
      high[c] = std::max(high[c], plan_.weight[i]);
    }
    for (std::size_t c = 0; c < n_channels_; ++c) {
      expect(low[c] >= -127, "channel {} has weight -128", c);
      const bool dead = plan_.weight_steps_per_unit[plan_.per_channel ? c : 0] == 0;
      expect(!dead || (low[c] == 0 && high[c] == 0), "dead channel {} has weights", c);
    }
  }

  void check_output() {
    const double steps = plan_.output.steps_per_unit;
    expect(steps > 0 && std::isfinite(steps), "output has {} steps per unit", steps);
    const std::int64_t limit = std::int64_t{1} << (size_bits(plan_.output_dtype) - 1);
    expect(plan_.output.zero_point >= -limit && plan_.output.zero_point < limit,
           "output zero point {} is outside {}", plan_.output.zero_point, name_of(plan_.output_dtype));
  }

  void check_scales(std::size_t l) {
    const double weight = plan_.weight_steps_per_unit[l];
    const double bias = plan_.bias_steps_per_unit[l];
    expect(weight >= 0 && std::isfinite(weight), "lane {} has {} weight steps per unit", l, weight);
    expect(bias > 0, "lane {} has {} bias steps per unit", l, bias);
    const int intrinsic = plan_.intrinsic_shift[l];
    const bool split = plan_.input_dtype == DType::i16 && plan_.requant != Requant::mult31;
    expect(split ? intrinsic == 1 || intrinsic == 8 : intrinsic == 0,
           "lane {} has intrinsic shift {}", l, intrinsic);
  }

  bool has_multiplier() const { return plan_.mode == ConvMode::mult7_i8 || plan_.mode == ConvMode::mult7_i16; }

  void check_shift(std::size_t l) {
    const auto [multiplier, shift] = plan_.gain[l];
    expect(shift >= 0 && shift <= (has_multiplier() ? 38 : 31), "lane {} has shift {}", l, shift);
    expect(multiplier >= 1 && multiplier <= (has_multiplier() ? 127 : 1),
           "lane {} has multiplier {}", l, multiplier);
    if (plan_.requant != Requant::folded) return;
    const double zero = std::ldexp(static_cast<double>(plan_.output.zero_point), shift);
    expect(zero >= kI32Low && zero <= kI32High, "lane {}: the zero point needs {} in the bias", l, zero);
  }

  /// m * 2^-n = 2^h * Sc / (Sa * Sw), and the bias is at the scale of the accumulator.
  void check_gain(std::size_t l) {
    const auto [multiplier, shift] = plan_.gain[l];
    const double gain = std::ldexp(static_cast<double>(multiplier), -shift);
    const double weight = plan_.weight_steps_per_unit[l];
    if (weight == 0) {
      expect(multiplier == 1, "dead lane {} has multiplier {}", l, multiplier);
      return;
    }
    const double wanted =
        std::ldexp(plan_.output.steps_per_unit / (plan_.input.steps_per_unit * weight), plan_.intrinsic_shift[l]);
    expect(std::abs(gain - wanted) <= tolerance_ * wanted,
           "lane {} has gain {}; its scales ask for {}", l, gain, wanted);
    const double output = plan_.bias_steps_per_unit[l] * gain;
    expect(std::abs(output - plan_.output.steps_per_unit) <= tolerance_ * plan_.output.steps_per_unit,
           "lane {}: bias steps {} are not those of the accumulator", l, plan_.bias_steps_per_unit[l]);
  }

  /// An engine makes a multiplier of 31 bits and a shift of at most 31 beyond them.
  void check_engine_gain(std::size_t l) {
    const auto scale = static_cast<double>(plan_.weight_scale[plan_.per_channel ? l : 0]);
    expect(scale > 0 && std::isfinite(scale), "lane {} has weight scale {}", l, scale);
    const double gain = scale * plan_.output.steps_per_unit / plan_.input.steps_per_unit;
    using Float = std::numeric_limits<float>;
    const bool at_a_limit = scale < static_cast<double>(Float::min()) || scale == static_cast<double>(Float::max());
    expect(at_a_limit || gain >= 0x1p-31 * (1 - 0x1p-22), "lane {} has gain {}, below 2^-31", l, gain);
  }

  template <class... Values>
  bool expect(bool holds, fmt::format_string<Values...> fault, Values&&... values) {
    if (!holds) faults_.push_back(fmt::format(fault, std::forward<Values>(values)...));
    return holds;
  }

  const QuantizedConv& plan_;
  const double tolerance_;  ///< relative, of gains
  std::size_t n_channels_ = 0;
  std::size_t n_lanes_ = 0;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> verify_plan(const QuantizedConv& plan) {
  return PlanCheck(plan).run();
}

}  // namespace weightmill
