#include "names.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace weightmill {
namespace {

/// Letters to insert, delete or replace to turn `a` into `b` (Levenshtein).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

/// Lower case, with one '/' for each stretch of anything but letters and digits.
std::string plain(std::string_view name) {
  std::string result;
  for (const char letter : name) {
    const auto code = static_cast<unsigned char>(letter);
    if (std::isalnum(code) != 0) {
      result += static_cast<char>(std::tolower(code));
    } else if (!result.empty() && result.back() != '/') {
      result += '/';
    }
  }
  return result;
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  std::size_t fewest = 0;
  for (const std::string& candidate : candidates) {
    const std::size_t edits = edit_distance(word, candidate);
    const std::size_t allowed = std::max<std::size_t>(1, candidate.size() / 3);
    if (edits <= allowed && (!best || edits < fewest)) {
      best = candidate;
      fewest = edits;
    }
  }
  return best;
}

std::optional<std::string> nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  if (auto found = nearest(word, candidates)) return found;
  const std::string wanted = plain(word);
  const std::string* best = nullptr;
  for (const std::string& candidate : candidates) {
    const bool contains = !wanted.empty() && plain(candidate).find(wanted) != std::string::npos;
    if (contains && (best == nullptr || candidate.size() < best->size())) best = &candidate;
  }
  return best != nullptr ? std::optional(*best) : std::nullopt;
}

bool matches_pattern(std::string_view name, std::string_view pattern) {
  if (name == pattern) return true;
  std::size_t n = 0, p = 0, star = std::string_view::npos, behind_star = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      behind_star = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {  // the last * takes one letter more
      p = star + 1;
      n = ++behind_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace weightmill
