#include "weight_scales.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include <weightmill/kernels/quantize_linear.h>

namespace weightmill {
namespace {

/// Partial results side by side, so that a compiler can keep them in one register. Sums are always added up in this
/// order, whatever the machine.
constexpr std::size_t kLanes = 16;

bool all_finite(std::span<const float> x) {
  constexpr std::uint32_t kInfinity = 0x7f80'0000;
  std::uint32_t peak = 0;
  for (const float value : x) peak = std::max(peak, std::bit_cast<std::uint32_t>(value) & 0x7fff'ffff);
  return peak < kInfinity;
}

/// `range` widened to all of `x`.
WeightRange widened(WeightRange range, std::span<const float> x) {
  std::array<float, kLanes> low, high;
  low.fill(range.low);
  high.fill(range.high);
  std::size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      low[lane] = x[i + lane] < low[lane] ? x[i + lane] : low[lane];
      high[lane] = x[i + lane] > high[lane] ? x[i + lane] : high[lane];
    }
  }
  for (; i < x.size(); ++i) {
    low[0] = std::min(low[0], x[i]);
    high[0] = std::max(high[0], x[i]);
  }
  return {*std::min_element(low.begin(), low.end()), *std::max_element(high.begin(), high.end())};
}

void widen_each(std::span<WeightRange> ranges, std::span<const float> x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    ranges[i].low = x[i] < ranges[i].low ? x[i] : ranges[i].low;
    ranges[i].high = x[i] > ranges[i].high ? x[i] : ranges[i].high;
  }
}

/// The width of a step, rounded to float32 once.
float step_of(const WeightRange& range, DType code_type) {
  const std::int32_t highest = max_code(code_type);
  if (is_signed_integer(code_type)) return std::max(-range.low, range.high) / static_cast<float>(highest);
  return static_cast<float>((static_cast<double>(range.high) - range.low) / highest);
}

std::int32_t zero_point_of(const WeightRange& range, float scale, DType code_type) {
  const double zero = std::nearbyint(-static_cast<double>(range.low) / scale);
  return static_cast<std::int32_t>(std::clamp<double>(zero, 0, max_code(code_type)));
}

/// The step, or the largest one with which every code stands for a finite number: a zero point moves the lowest and the
/// highest code by up to half a step beyond the range.
float without_overflow(float step, std::int32_t zero_point, DType code_type) {
  const auto farthest = static_cast<float>(std::max(zero_point, max_code(code_type) - zero_point));
  return std::isfinite(step * farthest) ? step : std::nextafter(std::numeric_limits<float>::max() / farthest, 0.0F);
}

/// Elements that are coded at a time: they and their codes stay in the first-level cache.
constexpr std::size_t kChunk = 4096;

CodeRange codes_of(DType type) { return {min_code(type), max_code(type)}; }

/// The number that a code stands for, as engines compute it.
float dequantized(std::uint16_t code, std::int32_t zero_point, float scale, bool is_signed) {
  const std::int32_t value = is_signed ? static_cast<std::int16_t>(code) : static_cast<std::int32_t>(code);
  return static_cast<float>(value - zero_point) * scale;
}

WeightError error_of(float x, float back, float scale) {
  const double difference = static_cast<double>(back) - x;
  return {static_cast<double>(x) * x, difference * difference, std::abs(difference / scale)};
}

/// The error of a run of weights with one scale.
WeightError error_of_run(std::span<const float> x, std::span<const std::uint16_t> codes, float scale,
                         std::int32_t zero_point, bool is_signed) {
  std::array<double, kLanes> signal{}, noise{}, largest{};
  const auto add = [&](std::size_t lane, std::size_t i) {
    const double difference = static_cast<double>(dequantized(codes[i], zero_point, scale, is_signed)) - x[i];
    signal[lane] += static_cast<double>(x[i]) * x[i];
    noise[lane] += difference * difference;
    largest[lane] = std::max(largest[lane], std::abs(difference));
  };
  std::size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) add(lane, i + lane);
  }
  for (std::size_t lane = 0; i < x.size(); ++i, ++lane) add(lane, i);
  WeightError error;
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    error.merge({signal[lane], noise[lane], largest[lane] / std::abs(static_cast<double>(scale))});
  return error;
}

}  // namespace

std::optional<std::size_t> widen(const ScaleLayout& layout, std::uint64_t first, std::span<const float> x,
                                 std::span<WeightRange> ranges, std::uint64_t first_scale) {
  if (!all_finite(x)) {
    const auto bad = std::find_if_not(x.begin(), x.end(), [](float value) { return std::isfinite(value); });
    return static_cast<std::size_t>(bad - x.begin());
  }
  for (std::size_t done = 0; done < x.size();) {
    const ScaleRun run = run_at(layout, first + done, x.size() - done);
    const auto part = x.subspan(done, run.count);
    if (run.advances) {
      widen_each(ranges.subspan(run.scale - first_scale, run.count), part);
    } else {
      ranges[run.scale - first_scale] = widened(ranges[run.scale - first_scale], part);
    }
    done += run.count;
  }
  return std::nullopt;
}

WeightGrid grid_of(const WeightRange& range, DType code_type) {
  WeightGrid grid;
  const float step = step_of(range, code_type);
  grid.usable = step >= std::numeric_limits<float>::min();
  if (!grid.usable) return grid;
  if (!is_signed_integer(code_type)) grid.zero_point = zero_point_of(range, step, code_type);
  grid.scale = without_overflow(step, grid.zero_point, code_type);
  return grid;
}

WeightScales scales_for(std::span<const WeightRange> ranges, DType code_type) {
  WeightScales scales;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const WeightGrid grid = grid_of(ranges[i], code_type);
    scales.scale.push_back(grid.scale);
    if (!is_signed_integer(code_type)) scales.zero_point.push_back(grid.zero_point);
    if (!grid.usable) (ranges[i].low == 0 && ranges[i].high == 0 ? scales.zero : scales.negligible).push_back(i);
  }
  return scales;
}

double WeightError::sqnr_db() const noexcept {
  return noise == 0 ? std::numeric_limits<double>::infinity() : 10 * std::log10(signal / noise);
}

void add_error(const ScaleLayout& layout, const WeightScales& scales, DType code_type, std::uint64_t first,
               std::span<const float> x, std::span<WeightError> errors) {
  const bool is_signed = is_signed_integer(code_type);
  const bool apart = errors.size() > 1;
  std::array<std::uint16_t, kChunk> codes;
  static constexpr std::array<std::int32_t, kChunk> kNoZeroPoints{};
  for (std::size_t done = 0; done < x.size();) {
    const ScaleRun run = run_at(layout, first + done, std::min(kChunk, x.size() - done));
    const auto part = x.subspan(done, run.count);
    const auto part_codes = std::span(codes).first(run.count);
    const auto scale = std::span(scales.scale).subspan(run.scale);
    const std::span<const std::int32_t> zero_point = scales.zero_point.empty()
                                                         ? std::span<const std::int32_t>(kNoZeroPoints)
                                                         : std::span(scales.zero_point).subspan(run.scale);
    if (run.advances) {
      quantize_linear_each(part, scale.first(run.count), zero_point.first(run.count), codes_of(code_type), part_codes);
      for (std::size_t i = 0; i < run.count; ++i) {
        const float back = dequantized(codes[i], zero_point[i], scale[i], is_signed);
        errors[apart ? run.scale + i : 0].merge(error_of(part[i], back, scale[i]));
      }
    } else {
      quantize_linear_run(part, scale[0], zero_point[0], codes_of(code_type), part_codes);
      errors[apart ? run.scale : 0].merge(error_of_run(part, part_codes, scale[0], zero_point[0], is_signed));
    }
    done += run.count;
  }
}

}  // namespace weightmill
