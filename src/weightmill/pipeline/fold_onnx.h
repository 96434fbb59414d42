#pragma once

#include <filesystem>

#include <weightmill/base/progress.h>
#include <weightmill/model/fold.h>

namespace weightmill {

/// Turns QuantizeLinear over constants into integer constants and writes the model to `out`, with OUT.data beside it
/// where tensors are external. `out` empty: writes nothing and reports what would be.  [docs/folding-onnx.md]
///
/// Memory does not grow with the tensors: they are mapped, and codes are made while they are written. The input is only
/// read.
/// Throws: as OnnxModel; unsupported if `options.fail_on_left` and a weight had to be left as it was (names it and
/// why).
FoldReport fold_onnx(const std::filesystem::path& in, const std::filesystem::path& out, const FoldOptions& options,
                     const Progress& progress = {});

}  // namespace weightmill
