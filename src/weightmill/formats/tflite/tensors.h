#pragma once

#include <string_view>

#include <weightmill/model/tensor.h>

#include "container.h"

namespace weightmill {

/// One tensor; `where` names it in messages. Throws: as parse_tflite.
Tensor read_tensor(Container& container, const tflite::Tensor& source, std::string_view where);

/// This program's word for a type of the schema; DType::other where it has none.
DType to_dtype(tflite::TensorType type) noexcept;

}  // namespace weightmill
