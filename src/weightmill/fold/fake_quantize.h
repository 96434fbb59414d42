#pragma once

#include <memory>
#include <variant>

#include <weightmill/model/fold.h>

#include "constant_fold.h"
#include "numbers.h"

namespace weightmill {

/// A FakeQuantize over constants. All limits are of `type`, as the weights are after an eventual Convert.
struct FakeQuantize {
  Numbers weights;
  Numbers input_low, input_high, output_low, output_high;
  DType type = DType::f32;  ///< float32, float16 or bfloat16
  std::int64_t levels = 256;
};

/// A FakeQuantize that becomes codes, a scale and perhaps a zero point:
/// output = (codes - zero_point) * scale, in the FakeQuantize's float type.  [docs/folding.md §3-5]
class FakeQuantizeFold : public ConstantFold {
 public:
  /// Shape of scale and zero point: that of output_low broadcast with output_high.
  virtual const Shape& affine_shape() const noexcept = 0;
  virtual DType affine_type() const noexcept = 0;

  /// Write scales or zero points [first, first + count) to `out`, in affine_type().
  virtual void scales(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const = 0;
  virtual void zero_points(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const = 0;
};

/// Reads the limits and, where a zero point might be dropped, the weights. Left says why a FakeQuantize cannot be
/// folded as `options.semantics` demands.
std::variant<std::unique_ptr<FakeQuantizeFold>, Left> plan_fake_quantize(const FakeQuantize& operation,
                                                                         const FoldOptions& options,
                                                                         const Reading& reading);

/// FakeQuantize -> Convert(integer) -> Convert(float) -> [Subtract] -> Multiply, of which the first two become codes.
struct QuantizedChain {
  FakeQuantize quantize;
  DType code_type = DType::i8;  ///< of the Convert
  bool subtracts = false;
  Numbers zero_point;           ///< where it subtracts: of type `arithmetic` after an eventual Convert
  DType arithmetic = DType::f32;
};

/// As plan_fake_quantize(). The scale stays the graph's own, the zero point too unless it could be dropped.
std::variant<std::unique_ptr<ConstantFold>, Left> plan_quantized_chain(const QuantizedChain& chain,
                                                                       const FoldOptions& options,
                                                                       const Reading& reading);

/// Integer constant -> Convert(float) -> Subtract -> …: codes with their zero point subtracted.
struct IntegerChain {
  Numbers codes;
  Numbers zero_point;
  DType arithmetic = DType::f32;
};

/// Left where a code would leave its type or a zero point is no integer.
std::variant<std::unique_ptr<ConstantFold>, Left> plan_integer_chain(const IntegerChain& chain,
                                                                     const FoldOptions& options,
                                                                     const Reading& reading);

}  // namespace weightmill
