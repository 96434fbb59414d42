#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightmill::cli {

/// The candidate that `word` was most likely meant to be: the one with the fewest edits, if those are at most a third of
/// its letters (at least one). Ties go to the earlier candidate.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace weightmill::cli
