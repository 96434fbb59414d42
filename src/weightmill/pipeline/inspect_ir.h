#pragma once

#include <filesystem>

#include <weightmill/report/inspect.h>

namespace weightmill {

/// Whether a file is taken for an OpenVINO IR: its name ends in .xml.
bool is_ir_path(const std::filesystem::path& path);

/// What an OpenVINO IR holds: one row for each constant weight of an operator, also where it is dequantized or
/// fake-quantized at run time, and one for each other FakeQuantize over a constant. The note of a FakeQuantize says
/// what `weightmill fold` would make of it, or why nothing; to know, the weights are read as a fold reads them.
/// Throws: as fold_ir().
InspectReport inspect_ir(const std::filesystem::path& path);

}  // namespace weightmill
