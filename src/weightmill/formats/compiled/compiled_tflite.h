#pragma once

#include "compiled.h"

namespace weightmill {

/// open_compiled() for a TFLite file.
CompiledFile open_compiled_tflite(std::span<const std::uint8_t> file, std::string_view name);

/// replace_compiled() for a TFLite file. Up to 15 unused bytes stand behind a changed part, so that all alignments
/// stay.
std::vector<std::uint8_t> replace_compiled_tflite(std::span<const std::uint8_t> file, std::string_view name,
                                                  const std::vector<std::vector<std::uint8_t>>& payloads,
                                                  const std::vector<std::vector<std::uint8_t>>& read_only);

/// Whether a TFLite file knows the NPU's operator; false for anything that is not sound.
bool is_compiled_tflite(std::span<const std::uint8_t> file) noexcept;

}  // namespace weightmill
