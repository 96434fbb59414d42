#pragma once

#include <weightmill/report/report.h>

namespace weightmill::cli {

/// The table of a packed model on stdout: a line for each layer, their sum, and what was not packed.
void print_pack_table(const PackReport& report);

}  // namespace weightmill::cli
