#pragma once

#include <filesystem>

#include <weightmill/report/inspect.h>

namespace weightmill {

/// Whether a file is taken for an ONNX model: its name ends in .onnx.
bool is_onnx(const std::filesystem::path& path);

/// What an ONNX model holds: one row for each constant weight of an operator, also where it is dequantized, or still
/// quantized at run time; its note then says so.
/// Throws: as OnnxModel.
InspectReport inspect_onnx(const std::filesystem::path& path);

}  // namespace weightmill
