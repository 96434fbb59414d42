#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <weightmill/model/dtype.h>

#include "weight_scales.h"

namespace weightmill {

/// Finds the scale with the least squared error among a few for each group of weights that share one. The widest takes
/// all weights in, the others cut off ever more of the largest for finer steps.  [docs/weight-only.md §2]
///
/// Signed 4-bit codes have 8 steps on one side and 7 on the other: the 8 go to the side of the largest weight, by a
/// negative scale where that is above 0.
class ScaleSearch {
 public:
  static constexpr std::size_t kCandidates = 12;

  /// `ranges`: of the groups, as widen() gives them.
  ScaleSearch(std::span<const WeightRange> ranges, DType code_type);

  /// Sums of squared errors, candidate by candidate, each of all groups.
  using Errors = std::vector<float>;
  Errors no_errors() const { return Errors(kCandidates * n_groups_); }

  /// Adds weights of one group to `errors`.
  void add_run(std::size_t group, std::span<const float> x, std::span<float> errors) const;
  /// Adds rows of weights whose columns are neighbouring groups. `x`: rows x `columns`.
  void add_rows(std::size_t first_group, std::span<const float> x, std::size_t columns, std::span<float> errors) const;

  /// The scales with the least errors; of equal ones, the first. `errors`: sums over all weights, in the order of
  /// Errors. Dead groups are named as scales_for() names them.
  WeightScales best(std::span<const double> errors) const;

 private:
  std::size_t at(std::size_t candidate, std::size_t group) const { return candidate * n_groups_ + group; }
  bool has_symmetric_candidates(const WeightRange& range) const;
  void add_symmetric_candidates(std::span<const WeightRange> ranges);
  void add_candidates(std::size_t group, const WeightRange& range);

  std::size_t n_groups_;
  DType code_type_;
  WeightScales whole_;        ///< of the ranges as they are, with the names of dead groups
  std::vector<float> scale_;  ///< candidate by candidate, as Errors
  std::vector<float> steps_per_unit_;
  std::vector<float> lowest_, highest_;  ///< codes less the zero point: -lowest_ is the zero point of unsigned codes
};

/// Adds weights [first, first + x.size()) of a tensor. `first_scale`: the number that group 0 of the search has there.
void add_candidate_errors(const ScaleSearch& search, const ScaleLayout& layout, std::uint64_t first,
                          std::span<const float> x, std::uint64_t first_scale, std::span<float> errors);

}  // namespace weightmill
