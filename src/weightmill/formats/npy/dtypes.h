#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <weightmill/model/dtype.h>

namespace weightmill::npy {

/// numpy's letters for a type, without the byte order: "i2" for int16; empty where numpy has none.
std::string_view letters_of(DType dtype) noexcept;

/// The type of numpy's letters, if this program has it.
std::optional<DType> dtype_of(std::string_view letters) noexcept;

}  // namespace weightmill::npy
