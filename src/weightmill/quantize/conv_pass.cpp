#include "conv_pass.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <weightmill/base/rounding.h>

#include "scale.h"

namespace weightmill {
namespace {

constexpr double kI32Low = std::numeric_limits<std::int32_t>::min();
constexpr double kI32High = std::numeric_limits<std::int32_t>::max();
constexpr int kLowShift = 1;   ///< of the int16 convolution: the lost bit of the input
constexpr int kHighShift = 8;  ///< the same and the seven bits of the lower half
constexpr int kReducedBits = 2;  ///< given up by a weight whose shift is too long

/// A 32-bit accumulator shifted by 31 is little but its sign, by 32 nothing; a 7-bit multiplier makes it 39 bits long.
struct ShiftLimits {
  int soft;
  int hard;
};

constexpr ShiftLimits shift_limits(bool multiplier) { return multiplier ? ShiftLimits{37, 39} : ShiftLimits{31, 32}; }

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Whether input steps times weight steps leave the gain, with output steps within 2^+-512 (layer.cpp), and every later
/// power of two within double's normal numbers.
bool is_usable(double product) { return product > 0x1p-480 && product < 0x1p480; }

/// The multiplier in 1/128 that is at least `fraction`, so that the weights can shrink to make the gain exact.
int exact_multiplier(double fraction) {
  return static_cast<int>(std::min(128.0, std::max(std::ceil(128 * fraction), 64.0)));
}

int nearest_multiplier(double fraction) {
  return static_cast<int>(std::clamp(round_half_even(128 * fraction), -128.0, 127.0));
}

void make_pow2(Lane& lane, const Pow2Split& split) {
  lane.steps_per_unit *= split.fraction;
  lane.gain /= split.fraction;
  lane.shift = -split.exponent;
}

void make_mult7_exact(Lane& lane, const Pow2Split& split) {
  lane.multiplier = exact_multiplier(split.fraction);
  lane.shift = 7 - split.exponent;
  lane.steps_per_unit *= 128 * split.fraction / lane.multiplier;
  if (lane.multiplier == 128) {
    lane.multiplier = 64;
    --lane.shift;
  }
  lane.gain = times_pow2(lane.multiplier, -lane.shift);
}

void make_mult7_nearest(Lane& lane, const Pow2Split& split) {
  lane.multiplier = nearest_multiplier(split.fraction);
  lane.shift = 7 - split.exponent;
}

DType integer_type(unsigned bits) { return bits == 8 ? DType::i8 : bits == 16 ? DType::i16 : DType::i32; }

double lowest_code(DType dtype) { return -times_pow2(1.0, static_cast<int>(size_bits(dtype)) - 1); }

}  // namespace

void Lane::scale_gain(int exponent) {
  if (exponent == 0) return;
  gain = times_pow2(gain, exponent);
  shift -= exponent;
}

void Lane::kill() {
  const int kept = intrinsic;
  *this = Lane{};
  intrinsic = kept;
}

Knobs Knobs::of(const Layer& layer) {
  Knobs knobs{.mode = layer.request.mode,
              .relu_fallback = std::nullopt,
              .high_shift = std::vector<char>(layer.n_lanes),
              .drop = std::vector<int>(layer.n_lanes)};
  if (layer.request.relu_workaround) {
    knobs.relu_fallback = knobs.mode == ConvMode::pow2_folded_i8 ? ConvMode::pow2_i8 : ConvMode::pow2_i16;
  }
  return knobs;
}

ConvPass::ConvPass(const Layer& layer, Knobs& knobs, LaneWeights& weights)
    : layer_(layer),
      knobs_(knobs),
      weights_(weights),
      traits_(traits_of(knobs.mode)),
      output_(wanted_output(layer.request, knobs.mode)),
      output_zero_(static_cast<double>(output_.zero_point)) {}

bool ConvPass::run() {
  if (std::exchange(knobs_.bias_reduced, false)) note_bias_reduced();
  choose_ideal_scales();
  apply_knobs();
  kill_vanishing_lanes();
  if (!make_shifts_legal()) return false;
  if (traits_.folded && fit_zero_point() && !make_shifts_legal()) return false;
  choose_output();
  if (!fit_bias()) return false;
  if (fixed() && !check_accumulator()) return false;
  if (knobs_.relu_fallback && !relu_is_expressible()) return fall_back();
  note_choices();
  return true;
}

// §4.1 ----------------------------------------------------------------------------------------------------------------

void ConvPass::choose_ideal_scales() {
  lanes_.reserve(layer_.n_lanes);
  for (const double peak : layer_.peak) lanes_.push_back(ideal_lane(peak));
}

Lane ConvPass::ideal_lane(double peak) const {
  Lane lane;
  const double steps = 127.0 / peak;  // infinite for a peak of 0, or a denormal one
  const double product = layer_.request.input.steps_per_unit * steps;
  if (!std::isfinite(steps) || !is_usable(product)) return lane;
  lane.steps_per_unit = steps;
  lane.gain = output_.steps_per_unit / product;
  const Pow2Split split = split_pow2(lane.gain);
  if (!traits_.multiplier) {
    make_pow2(lane, split);
  } else if (exact_gain()) {
    make_mult7_exact(lane, split);
  } else {
    make_mult7_nearest(lane, split);
  }
  return lane;
}

bool ConvPass::exact_gain() const noexcept {
  const MultiplierRule rule = layer_.request.multiplier;
  return !traits_.multiplier || rule == MultiplierRule::exact || (rule == MultiplierRule::by_policy && fixed());
}

// §4.2 ----------------------------------------------------------------------------------------------------------------

void ConvPass::apply_knobs() {
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    Lane& lane = lanes_[l];
    if (layer_.int16_input) lane.intrinsic = knobs_.high_shift[l] ? kHighShift : kLowShift;
    lane.scale_gain(lane.intrinsic + knobs_.drop[l]);
    if (knobs_.drop[l] > 0) lane.steps_per_unit = times_pow2(lane.steps_per_unit, -knobs_.drop[l]);
  }
}

// §4.3 ----------------------------------------------------------------------------------------------------------------

void ConvPass::kill_vanishing_lanes() {
  std::vector<ChannelEffect> dead;
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    if (layer_.peak[l] * lanes_[l].steps_per_unit > 0.5) continue;  // half a step rounds to 0
    lanes_[l].kill();
    dead.push_back({channel_name(l), kInfinity});
  }
  if (dead.empty()) return;
  const bool all = dead.size() == lanes_.size();
  note(all ? DiagnosticCode::all_zero : DiagnosticCode::some_zero, std::move(dead));
}

// §4.4 ----------------------------------------------------------------------------------------------------------------

bool ConvPass::make_shifts_legal() {
  rescale_output();
  const ShiftLimits limits = shift_limits(traits_.multiplier);
  std::vector<std::size_t> too_long;
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    if (lanes_[l].shift >= limits.soft) too_long.push_back(l);
  }
  if (too_long.empty()) return true;
  if (layer_.int16_input && raise_intrinsic_shift(too_long)) return false;
  shorten_shifts(too_long, limits.hard);
  return true;
}

/// Right shifts cannot be negative: the output gets coarser for all lanes until the least is 0.
void ConvPass::rescale_output() {
  const auto least = std::min_element(lanes_.begin(), lanes_.end(),
                                      [](const Lane& a, const Lane& b) { return a.shift < b.shift; });
  const int excess = -least->shift;
  if (excess <= 0) return;
  const auto forced_by = channel_name(static_cast<std::size_t>(least - lanes_.begin()));
  for (Lane& lane : lanes_) lane.scale_gain(-excess);
  output_.steps_per_unit = times_pow2(output_.steps_per_unit, -excess);
  output_zero_ = std::trunc(times_pow2(output_zero_, -excess));
  if (traits_.bits == 8) note(DiagnosticCode::output_rescaled, {{forced_by, static_cast<double>(excess)}});
}

void ConvPass::shorten_shifts(const std::vector<std::size_t>& too_long, int hard_limit) {
  std::vector<ChannelEffect> reduced;
  std::vector<ChannelEffect> zeroed;
  for (const std::size_t l : too_long) {
    Lane& lane = lanes_[l];
    lane.steps_per_unit = times_pow2(lane.steps_per_unit, -kReducedBits);
    lane.scale_gain(kReducedBits);
    reduced.push_back({channel_name(l), static_cast<double>(kReducedBits)});
    if (lane.shift < hard_limit) continue;
    lane.kill();
    zeroed.push_back({channel_name(l), kInfinity});
  }
  note(DiagnosticCode::shift_reduced, std::move(reduced));
  if (!zeroed.empty()) note(DiagnosticCode::shift_zeroed, std::move(zeroed));
}

bool ConvPass::raise_intrinsic_shift(const std::vector<std::size_t>& lanes) {
  bool changed = false;
  for (const std::size_t l : lanes) changed |= std::exchange(knobs_.high_shift[l], char{1}) == 0;
  return changed;
}

// §4.5 ----------------------------------------------------------------------------------------------------------------

/// The zero point, at the scale of the accumulator, must fit 32 bits. Returns whether a lane had to change.
bool ConvPass::fit_zero_point() {
  std::vector<ChannelEffect> reduced;
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    Lane& lane = lanes_[l];
    const double zero = output_zero_ / lane.gain;
    const double ratio = std::max(zero / kI32Low, zero / kI32High);
    if (ratio <= 1) continue;
    const int excess = ceil_log2(ratio);
    lane.scale_gain(excess);
    lane.steps_per_unit = times_pow2(lane.steps_per_unit, -excess);
    reduced.push_back({channel_name(l), static_cast<double>(excess)});
  }
  if (reduced.empty()) return false;
  note(DiagnosticCode::zp_reduced, std::move(reduced));
  return true;
}

// §4.6 ----------------------------------------------------------------------------------------------------------------

void ConvPass::choose_output() {
  const bool per_tensor = lanes_.size() == 1 && !layer_.request.per_channel;
  const bool widened = knobs_.mode == ConvMode::pow2_folded_i16 && layer_.request.allow_int32 && per_tensor;
  output_dtype_ = widened ? DType::i32 : integer_type(traits_.bits);
  if (traits_.folded && output_dtype_ == DType::i32 && per_tensor) {
    const int shift = lanes_[0].shift;  // the accumulator itself is the output
    output_.steps_per_unit = times_pow2(output_.steps_per_unit, shift);
    output_zero_ = times_pow2(output_zero_, shift);
    lanes_[0].scale_gain(shift);
  }
  for (const Lane& lane : lanes_) bias_steps_.push_back(output_.steps_per_unit / lane.gain);
}

// §4.7 ----------------------------------------------------------------------------------------------------------------

bool ConvPass::fit_bias() {
  std::vector<double> steps;
  steps.reserve(lanes_.size());
  for (const Lane& lane : lanes_) steps.push_back(lane.steps_per_unit);
  weights_.update(steps);
  compute_wanted_bias();
  const std::vector<std::size_t> overflowing = overflowing_lanes();
  if (overflowing.empty()) {
    round_bias();
    return true;
  }
  if (layer_.int16_input && raise_intrinsic_shift(overflowing)) return false;
  for (const std::size_t l : overflowing) ++knobs_.drop[l];
  knobs_.bias_reduced = true;
  return false;
}

void ConvPass::compute_wanted_bias() {
  const ConvRequest& request = layer_.request;
  const bool corrected = request.input_mean && (request.bias || fixed());
  const auto input_zero = static_cast<double>(request.input.zero_point);
  wanted_.reserve(layer_.n_channels);
  real_bias_.reserve(layer_.n_channels);
  for (std::size_t c = 0; c < layer_.n_channels; ++c) {
    const Lane& lane = lanes_[layer_.lane_of(c)];
    const double products = input_zero * static_cast<double>(weights_.sum(c));
    const double in = lane.intrinsic == 0 ? products : round_half_even(times_pow2(products, -lane.intrinsic));
    const double out = traits_.folded ? times_pow2(output_zero_, lane.shift) : 0.0;
    const double real = layer_.bias_of(c) + (corrected ? weights_.mean_error()[c] : 0.0);
    real_bias_.push_back(real);
    // A bias of 0 stays 0 also where its scale is beyond double.
    wanted_.push_back((real == 0 ? 0.0 : real * bias_steps_[layer_.lane_of(c)]) + (out - in));
  }
}

bool ConvPass::overflows(std::size_t channel) const {
  return wanted_[channel] > kI32High + 0.5 || wanted_[channel] < kI32Low - 0.5;
}

/// Lanes with a channel whose bias does not fit; under the fixed policy not those without weights to give up.
std::vector<std::size_t> ConvPass::overflowing_lanes() const {
  std::vector<std::size_t> lanes;
  for (std::size_t c = 0; c < layer_.n_channels; ++c) {
    const std::size_t l = layer_.lane_of(c);
    if (!overflows(c) || (fixed() && lanes_[l].dead())) continue;
    if (lanes.empty() || lanes.back() != l) lanes.push_back(l);
  }
  return lanes;
}

void ConvPass::round_bias() {
  std::vector<ChannelEffect> clipped;
  bias_.reserve(layer_.n_channels);
  for (std::size_t c = 0; c < layer_.n_channels; ++c) {
    bias_.push_back(static_cast<std::int32_t>(round_half_even(std::clamp(wanted_[c], kI32Low, kI32High))));
    if (overflows(c)) clipped.push_back({static_cast<std::int64_t>(c), 0.0});
  }
  if (!clipped.empty()) note(DiagnosticCode::bias_saturated, std::move(clipped));
}

/// §4.7b: whether extreme inputs could carry the accumulator out of 32 bits.
bool ConvPass::check_accumulator() {
  const std::vector<std::size_t> channels = channels_at_risk();
  if (channels.empty()) return true;
  std::vector<std::size_t> lanes;
  std::vector<ChannelEffect> risky;
  for (const std::size_t c : channels) {
    lanes.push_back(layer_.lane_of(c));
    risky.push_back({static_cast<std::int64_t>(c), 0.0});
  }
  if (layer_.int16_input && raise_intrinsic_shift(lanes)) return false;
  note(DiagnosticCode::acc_risk, std::move(risky));
  return true;
}

std::vector<std::size_t> ConvPass::channels_at_risk() const {
  const double largest_input = layer_.int16_input ? 32768 : 128;
  const auto reach = [&](double weights, std::size_t c) {
    const auto divisor = static_cast<double>(1 << lanes_[layer_.lane_of(c)].intrinsic);
    return weights * largest_input / divisor + std::abs(static_cast<double>(bias_[c]));
  };
  std::vector<std::size_t> channels;
  const double most = 127.0 * static_cast<double>(layer_.n_rows);
  for (std::size_t c = 0; c < layer_.n_channels; ++c) {
    if (reach(most, c) > kI32High) channels.push_back(c);
  }
  if (channels.empty()) return channels;  // the usual case needs no sums
  const std::vector<std::int64_t> sums = weights_.abs_sums();
  std::erase_if(channels, [&](std::size_t c) { return reach(static_cast<double>(sums[c]), c) <= kI32High; });
  return channels;
}

// §4.8 ----------------------------------------------------------------------------------------------------------------

/// A threshold before the shift must be the saturation itself, nothing, or the same for all channels.
bool ConvPass::relu_is_expressible() const {
  return output_zero_ == lowest_code(output_dtype_) || output_zero_ == 0 || !layer_.request.per_channel;
}

bool ConvPass::fall_back() {
  const ConvMode mode = *knobs_.relu_fallback;
  knobs_ = Knobs::of(layer_);
  knobs_.mode = mode;
  knobs_.relu_fallback.reset();
  return false;
}

// §4.9 ----------------------------------------------------------------------------------------------------------------

void ConvPass::note_bias_reduced() {
  std::vector<ChannelEffect> reduced;
  for (std::size_t l = 0; l < knobs_.drop.size(); ++l) {
    if (knobs_.drop[l] > 0) reduced.push_back({channel_name(l), static_cast<double>(knobs_.drop[l])});
  }
  note(DiagnosticCode::bias_reduced, std::move(reduced));
}

void ConvPass::note_choices() {
  std::vector<ChannelEffect> high;
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    if (knobs_.high_shift[l]) high.push_back({channel_name(l), 0.0});
  }
  if (!high.empty()) note(DiagnosticCode::intrinsic, std::move(high));
  if (knobs_.mode != layer_.request.mode) note(DiagnosticCode::relu_fallback);
  if (plans_zero_output(layer_.request)) note(DiagnosticCode::zero_output);
}

void ConvPass::note(DiagnosticCode code, std::vector<ChannelEffect> channels) {
  diagnostics_.push_back({code, std::move(channels)});
}

std::int64_t ConvPass::channel_name(std::size_t lane) const noexcept {
  return layer_.request.per_channel ? static_cast<std::int64_t>(lane) : -1;
}

QuantizedConv ConvPass::take_plan() && {
  QuantizedConv plan;
  plan.mode = knobs_.mode;
  plan.requant = traits_.folded ? Requant::folded : Requant::after_shift;
  plan.per_channel = layer_.request.per_channel;
  plan.exact_gain = exact_gain();
  plan.input_dtype = layer_.int16_input ? DType::i16 : DType::i8;
  plan.output_dtype = output_dtype_;
  plan.input = layer_.request.input;
  plan.output = {output_.steps_per_unit, static_cast<std::int64_t>(output_zero_)};
  plan.weight_shape = layer_.request.weight_shape;
  plan.weight = std::move(weights_).take();
  plan.bias = std::move(bias_);
  plan.real_bias = std::move(real_bias_);
  for (const Lane& lane : lanes_) {
    plan.gain.push_back({lane.multiplier, lane.shift});
    plan.intrinsic_shift.push_back(static_cast<std::uint8_t>(lane.intrinsic));
    plan.weight_steps_per_unit.push_back(lane.steps_per_unit);
  }
  plan.bias_steps_per_unit = std::move(bias_steps_);
  plan.weight_drop = std::move(knobs_.drop);
  plan.diagnostics = std::move(diagnostics_);
  return plan;
}

}  // namespace weightmill
