#pragma once

#include <span>
#include <string_view>

#include <weightmill/model/accelerator.h>

namespace weightmill {

/// All Ethos-U configurations, smallest first within each family.  [docs/brick-order.md §1]
std::span<const Accelerator> accelerators();

/// The accelerator that Vela calls `name`, e.g. "ethos-u55-128"; case, "-" and "_" do not matter, so that the API's
/// "Ethos_U55_128" is found as well.
/// Throws: bad_option if there is none (suggests the nearest and lists all).
const Accelerator& find_accelerator(std::string_view name);

}  // namespace weightmill
