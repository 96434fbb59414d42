#pragma once

#include <optional>
#include <string_view>

#include <weightmill/model/dtype.h>

namespace weightmill::safetensors {

/// The format's word for a type: "F32", "I8" …; empty where it has none.
std::string_view word_of(DType dtype) noexcept;

/// The type that a word of the format says, if this program knows it.
std::optional<DType> dtype_of(std::string_view word) noexcept;

}  // namespace weightmill::safetensors
