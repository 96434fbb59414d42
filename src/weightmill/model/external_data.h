#pragma once

#include <cstdint>
#include <string_view>

namespace weightmill {

/// Where the tensors of an ONNX model are written.  [docs/folding-onnx.md §5]
enum class ExternalData : std::uint8_t {
  automatic,  ///< small models: one file; large ones as the input has it, and beside the model from 2 GiB on
  never,      ///< all in the model file, which then must stay below 2 GiB
  always,     ///< in OUT.data beside the model, but for the smallest
};

/// "auto", "never", "always".
std::string_view name_of(ExternalData placement) noexcept;
/// Throws: bad_option for any other word (lists them).
ExternalData external_data(std::string_view word);

}  // namespace weightmill
