#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis.h"

namespace weightmill {

/// What takes a stream's place, by the stream's index; nothing where it stays.
/// A replacement is a multiple of 16 bytes and not longer than what it replaces.
using Replacements = std::vector<std::optional<std::vector<std::uint8_t>>>;

/// Where bytes of the read-only tensor are after parts of it were taken out.
class LayoutMap {
 public:
  /// Takes out [begin, begin + size). Requires: behind all that was taken out so far.
  void take_out(std::uint64_t begin, std::uint64_t size);
  /// The new offset of the byte at `offset`, or of the first byte behind it that is still there.
  std::uint64_t operator()(std::uint64_t offset) const;
  const std::vector<Range>& gaps() const { return gaps_; }

 private:
  std::vector<Range> gaps_;
  std::vector<std::uint64_t> removed_before_;  // per gap
};

struct Rewritten {
  std::vector<std::vector<std::uint8_t>> payloads;
  std::vector<std::uint8_t> read_only;
  std::size_t n_insertions = 0;  ///< register writes that had to be added
};

/// The model with other streams in it, the gaps closed, `dead` taken out, and every address and length followed.
/// [docs/compiled-models.md §5]
/// Throws: unsupported if a command stream would outgrow its header.
Rewritten rewrite(const Analysis& analysis, const Replacements& replacements, const std::vector<Range>& dead);

}  // namespace weightmill
