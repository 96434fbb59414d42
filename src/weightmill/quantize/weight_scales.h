#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <weightmill/model/dtype.h>
#include <weightmill/model/scale_layout.h>

namespace weightmill {

/// The least and the greatest weight that share a scale; 0 is always between them.
struct WeightRange {
  float low = 0;
  float high = 0;
};

/// Widens the ranges to weights [first, first + x.size()) of a tensor. `ranges`: one for each scale of `layout`, from
/// `first_scale` on.
/// Returns the position in `x` of the first one that is NaN or infinite, if there is one; ranges mean nothing then.
std::optional<std::size_t> widen(const ScaleLayout& layout, std::uint64_t first, std::span<const float> x,
                                 std::span<WeightRange> ranges, std::uint64_t first_scale = 0);

/// The scale and the zero point of one group of weights.
struct WeightGrid {
  float scale = 1;
  std::int32_t zero_point = 0;
  bool usable = false;  ///< else float32 has no normal number for the scale; 1 and 0 stand in
};

/// Signed `code_type`: symmetric, scale = max|w| / (2^(bits-1) - 1), the lowest code stays unused. Unsigned: the range
/// from low to high in 2^bits - 1 steps, 0 at a code. Each in float32, as docs/weight-only.md §2 writes it.
/// Requires: int8, uint8, int4 or uint4; a finite range.
WeightGrid grid_of(const WeightRange& range, DType code_type);

/// Scales and zero points for weights:  weight ~ (code - zero_point) * scale.
struct WeightScales {
  std::vector<float> scale;               ///< normal float32 numbers above 0
  std::vector<std::int32_t> zero_point;   ///< empty: all 0
  std::vector<std::uint64_t> zero;        ///< scales whose weights are all 0: 1
  std::vector<std::uint64_t> negligible;  ///< scales that float32 has no normal number for: 1, and all codes are 0
};

/// grid_of() each range.
WeightScales scales_for(std::span<const WeightRange> ranges, DType code_type);

/// What codes lose.
struct WeightError {
  double signal = 0;     ///< sum of weight^2
  double noise = 0;      ///< sum of (dequantized - weight)^2
  double max_steps = 0;  ///< max |dequantized - weight| / |scale|

  void merge(const WeightError& other) noexcept {
    signal += other.signal;
    noise += other.noise;
    max_steps = other.max_steps > max_steps ? other.max_steps : max_steps;
  }
  /// 10 log10(signal / noise); infinite without noise.
  double sqnr_db() const noexcept;
};

/// Adds the error of weights [first, first + x.size()), with the codes that QuantizeLinear gives, to `errors`: one for
/// each scale of `layout`, or one for all.  The same blocks of weights give the same bits, in whatever order.
void add_error(const ScaleLayout& layout, const WeightScales& scales, DType code_type, std::uint64_t first,
               std::span<const float> x, std::span<WeightError> errors);

}  // namespace weightmill
