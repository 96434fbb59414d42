#pragma once

#include <string>

#include "fake_quantize.h"

namespace weightmill {

/// The part of an error's bound that is there for zero points that are integers but for rounding, in steps.
inline constexpr double kFoldTolerance = 1e-4;

/// Why a FakeQuantize of this form is not folded: levels, types or shapes; empty where it may be.
std::string objection_to_form(const FakeQuantize& operation, const FoldOptions& options);

/// Why these limits (or weights) forbid the fold; empty where they do not. `needs_scale`: the fold computes a scale
/// from the output limits.  [docs/folding.md §2]
std::string objection_to_limits(const FakeQuantize& operation, FoldSemantics semantics, bool needs_scale,
                                const Reading& reading);

}  // namespace weightmill
