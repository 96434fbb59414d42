#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include <weightmill/base/progress.h>
#include <weightmill/model/weight_quantization.h>

namespace weightmill {

/// Puts integer constants, Convert, Subtract and Multiply in the place of float weights of an OpenVINO IR and writes
/// the model to `out` (.xml) with its .bin beside it. `out` empty, or a weight below `options.min_sqnr_db`: writes
/// nothing and reports what would be.  [docs/weight-only.md]
///
/// The input's .bin is mapped; codes are made and written block by block, so memory does not grow with the model. The
/// .xml comes last: where it is, all is.
/// Throws: as Ir; bad_option if the output is the input or no .xml, or if a name in `options` matches no operator
/// (suggests one); bad_file if a file cannot be read or written, or if a weight is NaN or infinite; unsupported if
/// there is nothing to quantize, or if `options.fail_on_left` and a weight had to be left as it was (names it and why).
WeightQuantizeReport quantize_weights_ir(const std::filesystem::path& in, const std::filesystem::path& out,
                                         const WeightQuantizeOptions& options, const Progress& progress = {});

/// What quantize_weights_ir() would do with files of these contents. Throws: as quantize_weights_ir().
WeightQuantizeReport plan_quantize_weights_ir(std::span<const std::uint8_t> xml, std::span<const std::uint8_t> bin,
                                              const WeightQuantizeOptions& options);

}  // namespace weightmill
