#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <weightmill/model/tensor.h>

#include "container.h"

namespace weightmill {

/// The dense bytes of `tensor`, whose `data` is still what the file stores.
/// Throws: bad_file if the layout is broken; unsupported for types below a byte or without a fixed size, and beyond the
/// container's limit of dense bytes.
std::vector<std::uint8_t> read_dense(Container& container, const tflite::SparsityParameters& source,
                                     const Tensor& tensor, std::string_view where);

}  // namespace weightmill
