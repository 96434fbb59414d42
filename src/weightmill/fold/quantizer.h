#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <weightmill/kernels/fake_quantize.h>
#include <weightmill/model/fold.h>

#include "broadcast.h"
#include "fake_quantize.h"
#include "numbers.h"

namespace weightmill {

/// Turns blocks of weights into steps above the lowest code, as one of the semantics does.  [docs/folding.md §3]
class Quantizer {
  /// Limits of neighbouring elements.
  struct LimitRows {
    std::vector<float> below, above, origin, range;
    CodeLimitRows part(std::size_t first, std::size_t count) const;
    void push(const CodeLimits& limits);
  };

 public:
  /// `target`: the shape of the codes. `low_code` is added to each step.
  Quantizer(const FakeQuantize& operation, FoldSemantics semantics, const Shape& target, std::int32_t low_code);

  /// The low 8 bits of the codes of elements [first, first + codes.size()); for levels up to 256. A step that is NaN
  /// has code 0. Returns whether there was one.
  bool codes(std::uint64_t first, std::span<std::uint8_t> codes) const;

  /// The codes themselves, for any number of levels. Not as fast.
  bool wide_codes(std::uint64_t first, std::span<std::int32_t> codes) const;

  /// What FakeQuantize itself gives for those elements: output_low + step / (levels - 1) * range, output_high above the
  /// input range; all in float32, then rounded to its type. Returns whether a step was NaN. `as_codes`: the step is
  /// found as for codes(), with levels - 1 rounded to the type too.
  bool values(std::uint64_t first, bool as_codes, std::span<float> values) const;

  /// Whether codes(), with a low code of 0, gives the steps that values() finds.
  bool codes_are_steps(bool as_codes) const noexcept;

  /// What values() gives for a step between the input limits.
  float value_of(float step, float output_low, float output_high, bool as_codes) const noexcept;

 private:
  const std::uint8_t* load_weights(std::uint64_t first, std::span<float> buffer) const;
  bool code_runs(const std::uint8_t* weights, std::uint64_t first, std::span<std::uint8_t> codes) const;
  bool code_each(const std::uint8_t* weights, std::uint64_t first, std::span<std::uint8_t> codes) const;
  bool code_periods(const std::uint8_t* weights, std::uint64_t first, std::span<std::uint8_t> codes) const;
  bool has_long_runs() const noexcept;
  void keep_period(const Shape& target);
  CodeLimits limits(float low, float high) const noexcept;
  CodeLimits limits_at(std::uint64_t flat) const noexcept;

  FakeQuantize operation_;
  CodeRule rule_;
  Precision arithmetic_;  ///< of the input range
  bool by_order_;         ///< clamps at min and max of the limits, not at low and high as they stand
  bool weights_in_place_; ///< element k of the codes is element k of the weights
  Precision weight_type_;
  Precision value_type_;
  BroadcastIndex weight_index_;
  BroadcastIndex low_index_;
  BroadcastIndex high_index_;
  LimitRows period_;  ///< of the first elements, after which limits repeat; empty where they do not, or not soon
};

}  // namespace weightmill
