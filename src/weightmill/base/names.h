#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightmill {

/// The candidate that `word` was most likely meant to be: the one with the fewest edits, if those are at most a third of
/// its letters (at least one). Ties go to the earlier candidate.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

/// The same for names of operators. Where letters alone find none, it is the shortest candidate that contains `word` when
/// case and separators do not count: exporters write "/head/cls/Conv" for what a training framework calls "head.cls".
std::optional<std::string> nearest_name(std::string_view word, const std::vector<std::string>& candidates);

/// Whether `name` is `pattern`, or matches it where * stands for any letters and ? for one.
bool matches_pattern(std::string_view name, std::string_view pattern);

}  // namespace weightmill
