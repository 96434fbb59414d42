#pragma once

#include <cstdint>

#include <weightmill/model/fold.h>

#include "numbers.h"

namespace weightmill {

/// Scale and zero point of one pair of output limits: what is stored, and the zero point that decides whether it may
/// go.
struct ScaleAndZero {
  float scale = 0;       ///< as stored; may be negative or 0
  float zero_point = 0;  ///< as stored
  float exact_scale = 0;       ///< before it was rounded for storing
  float exact_zero_point = 0;  ///< likewise, where the semantics decides on that one
};

/// scale = (output_high - output_low) / (levels - 1), zero_point = lowest code - output_low / scale, or 0 where the
/// scale is 0, rounded as one of the semantics does.  [docs/folding.md §4]
class ScaleRule {
 public:
  ScaleRule(FoldSemantics semantics, DType type, std::int64_t levels, std::int32_t low_code) noexcept;

  ScaleAndZero operator()(float output_low, float output_high) const noexcept;

  /// The type that scale and zero point are stored in.
  const Precision& stored() const noexcept { return stored_; }
  /// The arithmetic in which zero points are judged.
  const Precision& judged() const noexcept { return judged_; }

 private:
  FoldSemantics semantics_;
  Precision stored_;
  Precision judged_;
  float steps_;
  float low_code_;
};

}  // namespace weightmill
