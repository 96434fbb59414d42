#pragma once

#include <cstdint>

namespace weightmill {

/// real ~ multiplier * 2^-shift. What a rule may produce is stated where the rule is (docs/scale-records.md).
struct FixedPoint {
  std::int64_t multiplier = 0;
  int shift = 0;
  friend bool operator==(const FixedPoint&, const FixedPoint&) = default;
};

}  // namespace weightmill
