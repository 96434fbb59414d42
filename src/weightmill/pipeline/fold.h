#pragma once

#include <filesystem>

#include <weightmill/base/progress.h>
#include <weightmill/model/fold.h>

namespace weightmill {

/// Makes integer constants of a model's quantized float constants and writes it to `out`: OpenVINO IR (fold_ir.h) or
/// ONNX (fold_onnx.h). The content decides what `in` is, not its name. `out` empty: writes nothing and reports what
/// would be.
/// Throws: as the fold of the format; unsupported if `in` is of a format that is not folded.
FoldReport fold_file(const std::filesystem::path& in, const std::filesystem::path& out, const FoldOptions& options,
                     const Progress& progress = {});

}  // namespace weightmill
