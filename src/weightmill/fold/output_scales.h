#pragma once

#include <cstdint>

#include <weightmill/model/shape.h>

#include "broadcast.h"
#include "fake_quantize.h"
#include "scale_rule.h"

namespace weightmill {

/// A FakeQuantize's pairs of output limits, and the scale and zero point of each.
class OutputScales {
 public:
  /// `shape`: of scale and zero point.
  OutputScales(const FakeQuantize& operation, const ScaleRule& rule, const Shape& shape)
      : output_low_(operation.output_low),
        output_high_(operation.output_high),
        rule_(rule),
        size_(n_elements(shape, "FakeQuantize")),
        low_index_(operation.output_low.shape, shape),
        high_index_(operation.output_high.shape, shape) {}

  std::uint64_t size() const noexcept { return size_; }
  const ScaleRule& rule() const noexcept { return rule_; }
  float low(std::uint64_t index) const noexcept { return number_at(output_low_, low_index_.at(index)); }
  float high(std::uint64_t index) const noexcept { return number_at(output_high_, high_index_.at(index)); }
  ScaleAndZero operator[](std::uint64_t index) const noexcept { return rule_(low(index), high(index)); }

 private:
  Numbers output_low_, output_high_;
  ScaleRule rule_;
  std::uint64_t size_;
  BroadcastIndex low_index_, high_index_;
};

}  // namespace weightmill
