#pragma once

#include <cstddef>
#include <span>

namespace weightmill {

/// Grids that columns of weights may be rounded to, `n_candidates` for each column:
///   code - zero_point = round_half_even(min(max(x * steps_per_unit, lowest), highest)),  error = code * scale - x
/// Each span: candidate by candidate, `stride` apart, one number for each column; the codes within 2^22.
struct StepGrids {
  std::span<const float> scale, steps_per_unit, lowest, highest;
  std::size_t stride = 0;
  std::size_t n_candidates = 1;
};

/// The sum of squared errors of `x` on one grid, in float32: sixteen partial sums, the i-th of every 16th x from x[i] on,
/// added up in their order.
float squared_errors_run(std::span<const float> x, float scale, float steps_per_unit, float lowest,
                         float highest) noexcept;

/// Adds the squared errors of each column on each of its grids to `sums`, row by row. `x`: rows x `columns`; `sums`: as
/// the spans of `grids`.
void add_squared_errors(std::span<const float> x, std::size_t columns, const StepGrids& grids,
                        std::span<float> sums) noexcept;

namespace scalar {
float squared_errors_run(std::span<const float> x, float scale, float steps_per_unit, float lowest,
                         float highest) noexcept;
void add_squared_errors(std::span<const float> x, std::size_t columns, const StepGrids& grids,
                        std::span<float> sums) noexcept;
}  // namespace scalar

}  // namespace weightmill
