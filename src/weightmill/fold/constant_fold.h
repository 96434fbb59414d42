#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <weightmill/model/dtype.h>
#include <weightmill/model/shape.h>

namespace weightmill {

/// Why a constant stays as it is.
struct Left {
  std::string reason;
};

enum class ZeroPoint : std::uint8_t {
  none,     ///< there is nothing to subtract
  dropped,  ///< an integral one went into the codes
  kept,     ///< the dequantization subtracts it
};

/// How far dequantized codes are from what the quantizer itself gives.  [docs/folding.md §5]
struct StepError {
  double max_steps = 0;    ///< max |difference| / |scale|
  double bound_steps = 0;  ///< the largest bound that applied
  bool exceeds = false;    ///< somewhere the error was above its bound

  void add(double steps, double bound) noexcept {
    max_steps = steps > max_steps || steps != steps ? steps : max_steps;
    bound_steps = std::max(bound_steps, bound);
    exceeds |= !(steps <= bound);
  }
  void merge(const StepError& other) noexcept {
    max_steps = other.max_steps > max_steps || other.max_steps != other.max_steps ? other.max_steps : max_steps;
    bound_steps = std::max(bound_steps, other.bound_steps);
    exceeds |= other.exceeds;
  }
};

/// What writing a block of codes has shown.
struct BlockResult {
  bool saw_nan = false;     ///< a weight was NaN
  bool saw_misfit = false;  ///< a value is outside the integer type
  StepError error;

  void merge(const BlockResult& other) noexcept {
    saw_nan |= other.saw_nan;
    saw_misfit |= other.saw_misfit;
    error.merge(other.error);
  }
};

/// How a planned fold reads its constants before it writes: on how many threads, and whom it tells about bytes that
/// have been read, so that their pages can be given back.
struct Reading {
  unsigned jobs = 1;
  std::function<void(std::size_t bytes)> consumed = [](std::size_t) {};
};

/// Integer codes that will stand in a constant's place.
///
/// codes() may be called for any blocks in any order, on several threads: the result depends on nothing else.
class ConstantFold {
 public:
  virtual ~ConstantFold() = default;

  virtual DType code_type() const noexcept = 0;
  virtual const Shape& shape() const noexcept = 0;
  virtual ZeroPoint zero_point() const noexcept = 0;

  /// Writes codes [first, first + count), packed, to `out`. For 4-bit codes `first` is even.
  virtual BlockResult codes(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const = 0;

  /// The error as far as it is known before the codes are written.
  virtual StepError error() const { return {}; }

  /// Whether a result of codes() forbids the fold, and why; empty if not.
  virtual std::string objection(const BlockResult& result) const = 0;
};

/// Bytes of `count` codes.
inline std::uint64_t code_bytes(DType type, std::uint64_t count) noexcept { return (count * size_bits(type) + 7) / 8; }

}  // namespace weightmill
