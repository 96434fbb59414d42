#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include <weightmill/base/progress.h>
#include <weightmill/model/fold.h>

namespace weightmill {

/// Turns FakeQuantize over constants of an OpenVINO IR into integer constants and writes the model to `out` (.xml) with
/// its .bin beside it. `out` empty: writes nothing and reports what would be.  [docs/folding.md]
///
/// The input's .bin is mapped; codes are made and written block by block, so memory does not grow with the model. The
/// .xml comes last: where it is, all is. A model in which nothing is folded is copied byte for byte. Throws: as Ir;
/// bad_file if a file cannot be read or written; bad_option if the output is the input or no .xml; unsupported if
/// `options.fail_on_left` and a weight had to be left as it was (names it and why).
FoldReport fold_ir(const std::filesystem::path& in, const std::filesystem::path& out, const FoldOptions& options,
                   const Progress& progress = {});

/// What fold_ir() would do with files of these contents. Throws: as fold_ir().
FoldReport plan_fold_ir(std::span<const std::uint8_t> xml, std::span<const std::uint8_t> bin,
                        const FoldOptions& options);

}  // namespace weightmill
