#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

namespace weightmill {

/// Told how far long work has come: the stage's name, what is done, and how much there is (0: not known).
/// May be empty (nobody listens); may be called from several threads at once.
using Progress = std::function<void(std::string_view stage, std::size_t done, std::size_t total)>;

}  // namespace weightmill
