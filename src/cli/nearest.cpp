#include "nearest.h"

#include <algorithm>
#include <numeric>

namespace weightmill::cli {
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

}  // namespace weightmill::cli
