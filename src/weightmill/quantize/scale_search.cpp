#include "scale_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <weightmill/kernels/step_errors.h>

namespace weightmill {
namespace {

constexpr std::size_t kN = ScaleSearch::kCandidates;

/// Steps from 0 to the largest weight. The best of them lies in between for weights from uniform to heavy-tailed, for
/// groups from 16 to many thousand.
constexpr std::array<float, kN> kSteps4{8, 7, 7.5, 8.5, 9, 9.5, 10, 10.5, 11, 12, 13, 14};
constexpr std::array<float, kN> kSteps8{127, 128, 132, 136, 140, 146, 152, 160, 170, 180, 195, 210};
/// For codes with zero points: how much of the range stays.
constexpr std::array<float, kN> kKept{1, 0.96F, 0.92F, 0.88F, 0.84F, 0.8F, 0.76F, 0.72F, 0.66F, 0.6F, 0.54F, 0.5F};

float peak_of(const WeightRange& range) { return std::max(-range.low, range.high); }

/// Candidate `k` for a range that is not dead.
WeightGrid candidate(const WeightRange& range, DType code_type, std::size_t k) {
  if (!is_signed_integer(code_type)) return grid_of({range.low * kKept[k], range.high * kKept[k]}, code_type);
  if (size_bits(code_type) == 8) return {peak_of(range) / kSteps8[k], 0, true};
  return {(range.high > -range.low ? -peak_of(range) : peak_of(range)) / kSteps4[k], 0, true};
}

}  // namespace

ScaleSearch::ScaleSearch(std::span<const WeightRange> ranges, DType code_type)
    : n_groups_(ranges.size()), code_type_(code_type), whole_(scales_for(ranges, code_type)) {
  for (std::vector<float>* values : {&scale_, &steps_per_unit_, &lowest_, &highest_})
    values->resize(kCandidates * n_groups_);
  if (is_signed_integer(code_type)) add_symmetric_candidates(ranges);
  for (std::size_t group = 0; group < n_groups_; ++group) {
    if (!has_symmetric_candidates(ranges[group])) add_candidates(group, ranges[group]);
  }
}

/// Whether all candidates of the group are quotients of its peak, which add_symmetric_candidates() has made.
bool ScaleSearch::has_symmetric_candidates(const WeightRange& range) const {
  constexpr float kMostSteps = 256;
  return is_signed_integer(code_type_) && peak_of(range) >= std::numeric_limits<float>::min() * kMostSteps;
}

/// Those of all groups, in loops that a compiler turns into vectors: blocks of weights may be many and small.
void ScaleSearch::add_symmetric_candidates(std::span<const WeightRange> ranges) {
  const bool is_short = size_bits(code_type_) == 4;
  std::vector<float> peak(n_groups_);
  for (std::size_t group = 0; group < n_groups_; ++group) {
    const bool turned = is_short && ranges[group].high > -ranges[group].low;
    peak[group] = turned ? -peak_of(ranges[group]) : peak_of(ranges[group]);
  }
  std::ranges::fill(lowest_, static_cast<float>(min_code(code_type_)));
  std::ranges::fill(highest_, static_cast<float>(max_code(code_type_)));
  for (std::size_t k = 0; k < kCandidates; ++k) {
    const float steps = (is_short ? kSteps4 : kSteps8)[k];
    float *scale = &scale_[at(k, 0)], *steps_per_unit = &steps_per_unit_[at(k, 0)];
    for (std::size_t group = 0; group < n_groups_; ++group) {
      scale[group] = peak[group] / steps;
      steps_per_unit[group] = 1 / scale[group];
    }
  }
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
    errors[i] += squared_errors_run(x, scale_[i], steps_per_unit_[i], lowest_[i], highest_[i]);
  }
}

void ScaleSearch::add_rows(std::size_t first_group, std::span<const float> x, std::size_t columns,
                           std::span<float> errors) const {
  const auto from = [&](const std::vector<float>& values) { return std::span(values).subspan(first_group); };
  const StepGrids grids{from(scale_), from(steps_per_unit_), from(lowest_), from(highest_), n_groups_, kCandidates};
  add_squared_errors(x, columns, grids, errors.subspan(first_group));
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
    const ScaleRun run = run_at(layout, first + done, x.size() - done);
    const std::size_t group = run.scale - first_scale;
    std::uint64_t count = run.count;
    if (run.advances) {
      count *= rows_alike(layout, first + done, run.count, x.size() - done);
      search.add_rows(group, x.subspan(done, count), run.count, errors);
    } else {
      count = std::min<std::uint64_t>(count, kChunk);
      search.add_run(group, x.subspan(done, count), errors);
    }
    done += count;
  }
}

}  // namespace weightmill
