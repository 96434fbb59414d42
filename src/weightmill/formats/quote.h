#pragma once

#include <string>
#include <string_view>

namespace weightmill {

/// A name out of a file as messages show it: in quotes, '?' for what is no printable ASCII, cut after 80 characters.
std::string quote(std::string_view name);

}  // namespace weightmill
