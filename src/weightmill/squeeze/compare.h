#pragma once

#include <optional>
#include <string>

#include "programs.h"

namespace weightmill {

/// Whether two compiled models make the NPU do the same: each operation has the same registers and reads the same
/// weights (decoded), scales, constants, tables and copied bytes. Where those lie in the read-only tensor does not
/// matter. Returns nothing, or a sentence about the first difference. Throws: bad_file or unsupported as squeeze() does
/// for what it cannot follow.
std::optional<std::string> compare_programs(const NpuPrograms& before, const NpuPrograms& after);

}  // namespace weightmill
