#pragma once

#include <string_view>

#include <weightmill/model/affine.h>
#include <weightmill/model/shape.h>

#include "container.h"

namespace weightmill {

/// The scales and zero points of a tensor of `shape`; empty where `source` is absent or has no scales.
///
/// A missing list of zero points stands for zeros, a single one for all scales. The axis of a one-dimensional tensor is
/// 0 whatever the file says (old converters give a bias the axis of its weights).
/// Throws: bad_file if a scale is not positive and finite, or the numbers of scales, zero points and of the axis'
/// indices do not agree.
Affine read_affine(Container& container, const tflite::QuantizationParameters* source, const Shape& shape,
                   std::string_view where);

/// The schema's word for a scheme beyond scales and zero points, e.g. "BlockwiseQuantization"; else empty.
std::string_view quantization_details(const tflite::QuantizationParameters* source);

}  // namespace weightmill
