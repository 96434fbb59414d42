#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include <weightmill/model/dtype.h>
#include <weightmill/model/shape.h>

#include "constant_fold.h"

namespace weightmill {

/// A QuantizeLinear over constants, as ONNX defines it.  [docs/folding-onnx.md §2]
struct QuantizeLinear {
  DType type = DType::f32;  ///< of the data: float32, float16 or bfloat16
  Shape shape;              ///< of the data
  /// Data [first, first + out.size()) as float32. May be called on several threads.
  std::function<void(std::uint64_t first, std::span<float> out)> read;
  DType scale_type = DType::f32;
  Shape scale_shape;
  std::vector<float> scale;
  Shape zero_point_shape;
  std::vector<std::int32_t> zero_point;  ///< empty: there is none
  DType code_type = DType::i8;           ///< signed or unsigned, of 2, 4, 8 or 16 bits
  std::int64_t axis = 1;                 ///< negative: from the end
  std::int64_t block_size = 0;           ///< 0: not blocked
  bool grouped = false;                  ///< beyond ONNX: scales along axis 0 and `axis`, [G, C]; `axis` > 0, no blocks
  DType division = DType::f32;           ///< what x / scale is rounded to: float32, or `type`
};

/// Reads scales and zero points. Left says why the operation has no meaning or none that may be relied on: types that
/// do not match, shapes that do not fit, a scale that is 0 or not finite.
///
/// codes() gives ONNX Runtime's codes; its StepError is how far a weight is from its code beyond the half step that
/// rounding may take, in exact arithmetic; a saturated weight has no error. [docs/folding-onnx.md §3]
std::variant<std::unique_ptr<ConstantFold>, Left> plan_quantize_linear(QuantizeLinear operation);

}  // namespace weightmill
