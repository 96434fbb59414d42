#pragma once

#include <cstdint>
#include <optional>

#include <weightmill/model/dtype.h>
#include <weightmill/model/fold.h>

#include "numbers.h"

namespace weightmill {

/// Limits of an integer type of 4, 8 or 16 bits, e.g. -8 and 7.
std::int32_t lowest_code(DType type) noexcept;
std::int32_t highest_code(DType type) noexcept;

/// When a dequantization's zero point may go: left out where it is nothing, or subtracted from the codes once and for
/// all where every code stays an integer of its type.  [docs/folding.md §4]
class ZeroPointRule {
 public:
  /// `arithmetic`: the float type that the dequantization subtracts in.
  ZeroPointRule(FoldSemantics semantics, DType code_type, Precision arithmetic) noexcept
      : semantics_(semantics), code_type_(code_type), arithmetic_(arithmetic) {}

  const Precision& arithmetic() const noexcept { return arithmetic_; }

  /// Codes of up to 8 bits.
  bool has_narrow_codes() const noexcept { return size_bits(code_type_) <= 8; }

  /// Whether subtracting it changes nothing.
  bool is_nothing(float zero_point) const noexcept;

  /// Whether without() could have a value for some code; cheap.
  bool may_vanish(float zero_point) const noexcept;

  /// Whether without() has a value for each code from `lowest` to `highest`; may say no where it would take a closer
  /// look.
  bool surely_vanishes(float zero_point, std::int32_t lowest, std::int32_t highest) const noexcept;

  /// The code that needs no zero point and means the same as `code` with it.
  std::optional<std::int32_t> without(std::int32_t code, float zero_point) const noexcept;

 private:
  std::optional<std::int32_t> without_rounded(std::int32_t code, float zero_point) const noexcept;
  std::optional<std::int32_t> without_wrapped(std::int32_t code, float zero_point) const noexcept;

  FoldSemantics semantics_;
  DType code_type_;
  Precision arithmetic_;
};

}  // namespace weightmill
