#include "scale_search.h"

#include <algorithm>
#include <cmath>

namespace weightmill {
namespace {

constexpr std::size_t kN = ScaleSearch::kCandidates;

/// Steps from 0 to the largest weight. The best of them lies in between for weights from uniform to heavy-tailed, for
/// groups from 16 to many thousand.
constexpr std::array<float, kN> kSteps4{8, 7, 7.5, 8.5, 9, 9.5, 10, 10.5, 11, 12, 13, 14};
constexpr std::array<float, kN> kSteps8{127, 128, 132, 136, 140, 146, 152, 160, 170, 180, 195, 210};
/// For codes with zero points: how much of the range stays.
constexpr std::array<float, kN> kKept{1, 0.96F, 0.92F, 0.88F, 0.84F, 0.8F, 0.76F, 0.72F, 0.66F, 0.6F, 0.54F, 0.5F};

/// Rounds |x| < 2^22 to the nearest integer, ties to even.
float rounded(float x) {
  constexpr float kMagic = 0x1.8p23F;
  return (x + kMagic) - kMagic;
}

float squared_error(float x, float scale, float steps_per_unit, float lowest, float highest) {
  float steps = x * steps_per_unit;
  steps = steps < lowest ? lowest : steps;
  steps = steps > highest ? highest : steps;
  const float difference = rounded(steps) * scale - x;
  return difference * difference;
}

/// Sums side by side that are added up in a fixed order.
constexpr std::size_t kLanes = 16;

float squared_errors(std::span<const float> x, float scale, float steps_per_unit, float lowest, float highest) {
  std::array<float, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      sums[lane] += squared_error(x[i + lane], scale, steps_per_unit, lowest, highest);
  }
  for (std::size_t lane = 0; i < x.size(); ++i, ++lane)
    sums[lane] += squared_error(x[i], scale, steps_per_unit, lowest, highest);
  float sum = 0;
  for (const float lane : sums) sum += lane;
  return sum;
}

/// Candidate `k` for a range that is not dead.
WeightGrid candidate(const WeightRange& range, DType code_type, std::size_t k) {
  if (!is_signed_integer(code_type)) return grid_of({range.low * kKept[k], range.high * kKept[k]}, code_type);
  const float peak = std::max(-range.low, range.high);
  if (size_bits(code_type) == 8) return {peak / kSteps8[k], 0, true};
  return {(range.high > -range.low ? -peak : peak) / kSteps4[k], 0, true};
}

}  // namespace

ScaleSearch::ScaleSearch(std::span<const WeightRange> ranges, DType code_type)
    : n_groups_(ranges.size()), code_type_(code_type), whole_(scales_for(ranges, code_type)) {
  for (std::vector<float>* values : {&scale_, &steps_per_unit_, &lowest_, &highest_})
    values->resize(kCandidates * n_groups_);
  for (std::size_t group = 0; group < n_groups_; ++group) add_candidates(group, ranges[group]);
}

/// A candidate that float32 has no normal number for gives way to the whole range.
void ScaleSearch::add_candidates(std::size_t group, const WeightRange& range) {
  const WeightGrid whole = grid_of(range, code_type_);
  for (std::size_t k = 0; k < kCandidates; ++k) {
    WeightGrid grid = whole.usable ? candidate(range, code_type_, k) : whole;
    if (!grid.usable || !std::isnormal(grid.scale)) grid = whole;
    const auto zero = static_cast<float>(grid.zero_point);
    scale_[at(k, group)] = grid.scale;
    steps_per_unit_[at(k, group)] = 1 / grid.scale;
    lowest_[at(k, group)] = static_cast<float>(min_code(code_type_)) - zero;
    highest_[at(k, group)] = static_cast<float>(max_code(code_type_)) - zero;
  }
}

void ScaleSearch::add_run(std::size_t group, std::span<const float> x, std::span<float> errors) const {
  for (std::size_t k = 0; k < kCandidates; ++k) {
    const std::size_t i = at(k, group);
    errors[i] += squared_errors(x, scale_[i], steps_per_unit_[i], lowest_[i], highest_[i]);
  }
}

void ScaleSearch::add_each(std::size_t first_group, std::span<const float> x, std::span<float> errors) const {
  for (std::size_t k = 0; k < kCandidates; ++k) {
    const std::size_t first = at(k, first_group);
    const float *scale = &scale_[first], *steps = &steps_per_unit_[first];
    const float *lowest = &lowest_[first], *highest = &highest_[first];
    float* sums = &errors[first];
    for (std::size_t i = 0; i < x.size(); ++i)
      sums[i] += squared_error(x[i], scale[i], steps[i], lowest[i], highest[i]);
  }
}

WeightScales ScaleSearch::best(std::span<const double> errors) const {
  WeightScales scales = whole_;
  for (std::size_t group = 0; group < n_groups_; ++group) {
    std::size_t best = 0;
    for (std::size_t k = 1; k < kCandidates; ++k) {
      if (errors[at(k, group)] < errors[at(best, group)]) best = k;
    }
    scales.scale[group] = scale_[at(best, group)];
    if (!scales.zero_point.empty()) scales.zero_point[group] = static_cast<std::int32_t>(-lowest_[at(best, group)]);
  }
  return scales;
}

void add_candidate_errors(const ScaleSearch& search, const ScaleLayout& layout, std::uint64_t first,
                          std::span<const float> x, std::uint64_t first_scale, std::span<float> errors) {
  constexpr std::size_t kChunk = 4096;  // stays in the first-level cache while all candidates look at it
  for (std::size_t done = 0; done < x.size();) {
    const ScaleRun run = run_at(layout, first + done, std::min(kChunk, x.size() - done));
    const auto part = x.subspan(done, run.count);
    const std::size_t group = run.scale - first_scale;
    run.advances ? search.add_each(group, part, errors) : search.add_run(group, part, errors);
    done += run.count;
  }
}

}  // namespace weightmill
