#pragma once

#include <filesystem>

#include <weightmill/base/progress.h>
#include <weightmill/model/weight_quantization.h>

namespace weightmill {

/// Puts integer codes behind DequantizeLinear in the place of float weights and writes the model to `out`, with OUT.data
/// beside it where tensors are external. `out` empty, or a weight below `options.min_sqnr_db`: writes nothing and reports
/// what would be.  [docs/weight-only.md]
///
/// Memory does not grow with the tensors: they are mapped, and codes are made while they are written. The input is only
/// read.
/// Throws: as OnnxModel; bad_option if a name in `options` matches no operator (suggests one); bad_file if a weight is
/// NaN or infinite; unsupported if blocks need a later operator set, if there is nothing to quantize, or if
/// `options.fail_on_left` and a weight had to be left as it was (names it and why).
WeightQuantizeReport quantize_weights_onnx(const std::filesystem::path& in, const std::filesystem::path& out,
                                           const WeightQuantizeOptions& options, const Progress& progress = {});

}  // namespace weightmill
