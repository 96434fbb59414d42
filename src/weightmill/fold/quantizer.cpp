#include "quantizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace weightmill {
namespace {

/// Elements that are worked on together: their floats and codes stay in the first cache.
constexpr std::size_t kChunk = 4096;
/// Shorter runs of equal limits are spread out one by one: a call for each costs more.
constexpr std::uint64_t kShortRun = 64;
/// Limits that repeat after at most so many elements are kept: 1 MiB.
constexpr std::uint64_t kMaxPeriod = 1 << 16;

std::uint64_t product(const Shape& shape) {
  std::uint64_t size = 1;
  for (const std::int64_t extent : shape) size *= static_cast<std::uint64_t>(extent);
  return size;
}

/// OpenVINO finds input_high with input_low's shape. Where that would read beyond the last limit its result is
/// undefined and the right limit is taken.
const Shape& shape_for_high(const FakeQuantize& operation, FoldSemantics semantics) {
  const bool astray = semantics == FoldSemantics::openvino && operation.input_low.size <= operation.input_high.size;
  return astray ? operation.input_low.shape : operation.input_high.shape;
}

/// Rounding that Convert did to the weights before FakeQuantize saw them.
Precision converted(const FakeQuantize& operation, FoldSemantics semantics) {
  if (operation.weights.dtype == operation.type) return {};
  return {operation.type, semantics == FoldSemantics::openvino};
}

}  // namespace

Quantizer::Quantizer(const FakeQuantize& operation, FoldSemantics semantics, const Shape& target, std::int32_t low_code)
    : operation_(operation),
      arithmetic_{semantics == FoldSemantics::openvino && operation.type == DType::f16 ? DType::f16 : DType::f32},
      by_order_(semantics != FoldSemantics::mo2021),
      weights_in_place_(operation.weights.size == product(target)),
      weight_type_(converted(operation, semantics)),
      value_type_{operation.type, semantics == FoldSemantics::openvino},
      weight_index_(operation.weights.shape, target),
      low_index_(operation.input_low.shape, target),
      high_index_(shape_for_high(operation, semantics), target) {
  rule_ = {.steps = static_cast<float>(operation.levels - 1),
           .low = low_code,
           .half_up = semantics == FoldSemantics::mo2021,
           .in_f16 = arithmetic_.type == DType::f16};
  keep_period(target);
}

CodeLimitRows Quantizer::LimitRows::part(std::size_t first, std::size_t count) const {
  const auto of = [&](const std::vector<float>& all) { return std::span(all).subspan(first, count); };
  return {of(below), of(above), of(origin), of(range)};
}

void Quantizer::LimitRows::push(const CodeLimits& limits) {
  below.push_back(limits.below);
  above.push_back(limits.above);
  origin.push_back(limits.origin);
  range.push_back(limits.range);
}

bool Quantizer::has_long_runs() const noexcept {
  return std::min(low_index_.run(), high_index_.run()) >= kShortRun ||
         (operation_.input_low.size == 1 && operation_.input_high.size == 1);
}

void Quantizer::keep_period(const Shape& target) {
  const std::uint64_t period = std::max(low_index_.period(), high_index_.period());  // one divides the other
  if (has_long_runs() || period > kMaxPeriod || period > product(target) / 2) return;
  for (std::uint64_t i = 0; i < period; ++i) period_.push(limits_at(i));
}

CodeLimits Quantizer::limits(float low, float high) const noexcept {
  const float range = arithmetic_.round(high - low);
  if (!by_order_) return {low, high, low, range};
  return {high < low ? high : low, low < high ? high : low, low, range};
}

CodeLimits Quantizer::limits_at(std::uint64_t flat) const noexcept {
  return limits(number_at(operation_.input_low, low_index_.at(flat)),
                number_at(operation_.input_high, high_index_.at(flat)));
}

/// float32 bytes of the weights: theirs where they are float32 already, else `buffer`.
const std::uint8_t* Quantizer::load_weights(std::uint64_t first, std::span<float> buffer) const {
  if (weights_in_place_ && operation_.weights.dtype == DType::f32 && weight_type_.type == DType::f32) {
    return operation_.weights.bytes.data() + 4 * first;
  }
  if (weights_in_place_) {
    load_floats(operation_.weights, first, buffer);
  } else {
    for (std::size_t i = 0; i < buffer.size(); ++i)
      buffer[i] = number_at(operation_.weights, weight_index_.at(first + i));
  }
  if (weight_type_.type != DType::f32) {
    for (float& weight : buffer) weight = weight_type_.round(weight);
  }
  return reinterpret_cast<const std::uint8_t*>(buffer.data());
}

bool Quantizer::codes(std::uint64_t first, std::span<std::uint8_t> codes) const {
  std::array<float, kChunk> buffer;
  const auto code = has_long_runs()           ? &Quantizer::code_runs
                    : period_.below.empty() ? &Quantizer::code_each
                                            : &Quantizer::code_periods;
  bool saw_nan = false;
  for (std::size_t done = 0; done < codes.size(); done += kChunk) {
    const auto part = codes.subspan(done, std::min(kChunk, codes.size() - done));
    const std::uint8_t* weights = load_weights(first + done, std::span(buffer).first(part.size()));
    saw_nan |= (this->*code)(weights, first + done, part);
  }
  return saw_nan;
}

bool Quantizer::code_runs(const std::uint8_t* weights, std::uint64_t first, std::span<std::uint8_t> codes) const {
  const auto until_next = [](const BroadcastIndex& index, std::uint64_t flat) {
    return index.run() - flat % index.run();
  };
  const bool one = operation_.input_low.size == 1 && operation_.input_high.size == 1;
  bool saw_nan = false;
  for (std::size_t i = 0; i < codes.size();) {
    const std::uint64_t flat = first + i;
    const std::uint64_t run =
        one ? codes.size() : std::min(until_next(low_index_, flat), until_next(high_index_, flat));
    const std::size_t n = std::min<std::uint64_t>(run, codes.size() - i);
    saw_nan |= quantize_run(weights + 4 * i, limits_at(flat), rule_, codes.subspan(i, n));
    i += n;
  }
  return saw_nan;
}

bool Quantizer::code_each(const std::uint8_t* weights, std::uint64_t first, std::span<std::uint8_t> codes) const {
  LimitRows rows;
  std::vector<std::uint64_t> low(codes.size()), high(codes.size());
  low_index_.fill(first, low);
  high_index_.fill(first, high);
  for (std::size_t i = 0; i < codes.size(); ++i)
    rows.push(limits(number_at(operation_.input_low, low[i]), number_at(operation_.input_high, high[i])));
  return quantize_each(weights, rows.part(0, codes.size()), rule_, codes);
}

bool Quantizer::code_periods(const std::uint8_t* weights, std::uint64_t first, std::span<std::uint8_t> codes) const {
  const std::size_t period = period_.below.size();
  bool saw_nan = false;
  for (std::size_t i = 0; i < codes.size();) {
    const std::size_t at = (first + i) % period, n = std::min(codes.size() - i, period - at);
    saw_nan |= quantize_each(weights + 4 * i, period_.part(at, n), rule_, codes.subspan(i, n));
    i += n;
  }
  return saw_nan;
}

bool Quantizer::wide_codes(std::uint64_t first, std::span<std::int32_t> codes) const {
  std::vector<float> buffer(codes.size());
  const std::uint8_t* weights = load_weights(first, buffer);
  bool saw_nan = false;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    float weight;
    std::memcpy(&weight, weights + 4 * i, sizeof weight);
    const float step = quantize_step(weight, limits_at(first + i), rule_);
    saw_nan |= std::isnan(step);
    codes[i] = std::isnan(step) ? 0 : static_cast<std::int32_t>(step) + rule_.low;
  }
  return saw_nan;
}

bool Quantizer::values(std::uint64_t first, bool as_codes, std::span<float> values) const {
  const Shape& target = operation_.weights.shape;
  const BroadcastIndex out_low(operation_.output_low.shape, target), out_high(operation_.output_high.shape, target);
  CodeRule rule = rule_;
  rule.in_f16 = rule_.in_f16 && as_codes;
  if (as_codes) rule.steps = value_type_.round(rule_.steps);
  std::vector<float> buffer(values.size());
  std::memcpy(values.data(), load_weights(first, buffer), values.size_bytes());
  bool saw_nan = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t flat = first + i;
    CodeLimits own = limits_at(flat);
    if (!as_codes) own.range = number_at(operation_.input_high, high_index_.at(flat)) - own.origin;
    const float low = number_at(operation_.output_low, out_low.at(flat));
    const float high = number_at(operation_.output_high, out_high.at(flat));
    const float step = quantize_step(values[i], own, rule);
    saw_nan |= std::isnan(step);
    values[i] = values[i] <= own.below  ? value_type_.round(low)
                : values[i] > own.above ? value_type_.round(high)
                                        : value_of(step, low, high, as_codes);
  }
  return saw_nan;
}

bool Quantizer::codes_are_steps(bool as_codes) const noexcept {
  return !rule_.in_f16 && rule_.steps <= 255 && (!as_codes || operation_.type == DType::f32);
}

float Quantizer::value_of(float step, float output_low, float output_high, bool as_codes) const noexcept {
  const float steps = as_codes ? value_type_.round(rule_.steps) : rule_.steps;
  const float range = as_codes ? arithmetic_.round(output_high - output_low) : output_high - output_low;
  return value_type_.round(step / steps * range + output_low);
}

}  // namespace weightmill
