#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "constant_fold.h"
#include "output_scales.h"

namespace weightmill {

/// How far a dequantized number may be from FakeQuantize's, in steps, because scale and zero point are rounded.
/// [docs/folding.md §5]
double step_bound(double unit_roundoff, double zero_point, double largest_code) noexcept;

/// Measures the numbers that stored codes stand for against FakeQuantize's own output, in steps.  [docs/folding.md §5]
///
/// Only codes that occur count. Where many neighbours share a scale they are looked through only if one of its codes
/// could have a larger error than what has been measured before, in any block: the largest error of all blocks is
/// always found, while that of one block may be left out where others have larger ones.
class StepMeter {
 public:
  struct Codes {
    std::int32_t lowest = 0;  ///< as FakeQuantize's definition gives them
    std::int32_t levels = 256;
    ZeroPoint zero_point = ZeroPoint::none;
    bool shifted = false;  ///< stored codes are others than quantized ones: a zero point has gone into them
  };

  /// `shape`: of the codes; `affine_shape`: of scale and zero point. `scales` must outlive this.
  StepMeter(const OutputScales& scales, const Shape& affine_shape, const Shape& shape, const Codes& codes);

  /// Adds the errors of elements [first, first + stored.size()). Both are low 8 bits: `stored` as the model will have
  /// the codes, `defined` as FakeQuantize's definition gives them.
  void add(std::uint64_t first, std::span<const std::uint8_t> stored, std::span<const std::uint8_t> defined,
           StepError& error) const;
  /// The same for codes of any width.
  void add(std::uint64_t first, std::span<const std::int32_t> stored, std::span<const std::int32_t> defined,
           StepError& error) const;

 private:
  /// What the codes of one scale mean.
  struct Meaning {
    double low, step;  ///< FakeQuantize's output for the lowest code, and from code to code
    float scale, zero_point;
    double bound;
    double possible;  ///< no code that is stored as defined has a larger error
  };
  using Bytes = std::span<const std::uint8_t>;

  Meaning meaning_at(std::uint64_t index) const;
  const Meaning& meaning(std::uint64_t index, Meaning& made) const;
  double possible_error(const Meaning& meaning) const;
  double error_of(const Meaning& meaning, std::int32_t stored, std::int32_t defined) const;
  void errors_of_all(const Meaning& meaning, std::span<double> errors) const;
  double known(const StepError& error) const noexcept;
  bool can_exceed(double possible, const Meaning& meaning, const StepError& error) const noexcept;
  int largest_difference(Bytes a, Bytes b) const noexcept;
  void add_block(std::uint64_t first, Bytes stored, Bytes defined, StepError& error) const;
  void add_run(const Meaning& meaning, Bytes stored, Bytes defined, StepError& error) const;
  void add_each(std::uint64_t first, Bytes stored, Bytes defined, StepError& error) const;
  void add_equal(const Meaning& meaning, Bytes stored, Bytes defined, StepError& error) const;
  void add_pairs(const Meaning& meaning, Bytes stored, Bytes defined, bool differing_only, StepError& error) const;
  std::int32_t wide(std::uint8_t code) const noexcept { return is_signed_ ? static_cast<std::int8_t>(code) : code; }

  const OutputScales& scales_;
  Codes codes_;
  bool is_signed_;
  Precision grid_;
  BroadcastIndex index_;
  std::vector<Meaning> known_;  ///< of every scale, unless they are too many
  mutable std::atomic<double> largest_{0};  ///< measured so far
};

}  // namespace weightmill
