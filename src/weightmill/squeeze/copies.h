#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace weightmill {

/// Where bytes that the NPU reads come from in the read-only tensor.
struct Origin {
  std::uint64_t offset = 0;       ///< in the read-only tensor
  std::uint64_t destination = 0;  ///< of the copy that brought them: its address in the region, and
  std::uint64_t source = 0;       ///< its offset in the read-only tensor; both 0 where they are read in place
};

/// One part of a range that holds copied bytes.
struct CopiedPiece {
  std::uint64_t position = 0;  ///< from the start of the range
  std::uint64_t offset = 0;    ///< in the read-only tensor
  std::uint64_t size = 0;
};

/// Which bytes of each region are, at this point of the command stream, a copy of the read-only tensor's.
/// What survives of a partly overwritten copy keeps that copy's destination and source.
class Copies {
 public:
  static constexpr unsigned kRegions = 8;

  void copy(unsigned region, std::uint64_t destination, std::uint64_t source, std::uint64_t size);
  /// Other bytes were written to [begin, begin + size).
  void overwrite(unsigned region, std::uint64_t begin, std::uint64_t size);
  void overwrite_all(unsigned region) { regions_[region].clear(); }

  /// The origin of [address, address + size), or nothing unless one surviving piece of one copy holds all of it.
  std::optional<Origin> find(unsigned region, std::uint64_t address, std::uint64_t size) const;
  /// The part of [address, address + size) that the copy at `address` holds, or nothing.
  std::optional<CopiedPiece> first_piece(unsigned region, std::uint64_t address, std::uint64_t size) const;
  /// Appends the parts of [begin, begin + size) that are copies.
  void append_pieces(unsigned region, std::uint64_t begin, std::uint64_t size, std::vector<CopiedPiece>& pieces) const;

 private:
  struct Piece {
    std::uint64_t end, destination, source;
    std::uint64_t origin_of(std::uint64_t address) const { return source + (address - destination); }
  };
  std::array<std::map<std::uint64_t, Piece>, kRegions> regions_;  // by start; the pieces of a region do not overlap
};

/// a + b, or the largest value where that overflows.
constexpr std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}
constexpr std::uint64_t saturating_multiply(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

}  // namespace weightmill
