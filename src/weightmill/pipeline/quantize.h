#pragma once

#include <filesystem>

#include <weightmill/base/progress.h>
#include <weightmill/model/weight_quantization.h>

namespace weightmill {

/// Makes integers of a model's float weights, activations stay in floating point, and writes it to `out`: ONNX
/// (quantize_onnx.h) or OpenVINO IR (quantize_ir.h). The content decides what `in` is, not its name. `out` empty: writes
/// nothing and reports what would be.  [docs/weight-only.md]
/// Throws: as the format's function; bad_option if options contradict each other; unsupported if `in` is of a format that
/// is not quantized here.
WeightQuantizeReport quantize_weights(const std::filesystem::path& in, const std::filesystem::path& out,
                                      const WeightQuantizeOptions& options, const Progress& progress = {});

}  // namespace weightmill
