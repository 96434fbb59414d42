#include "copies.h"

#include <algorithm>
#include <iterator>

namespace weightmill {

void Copies::copy(unsigned region, std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
  overwrite(region, destination, size);
  if (size != 0) regions_[region][destination] = {saturating_add(destination, size), destination, source};
}

void Copies::overwrite(unsigned region, std::uint64_t begin, std::uint64_t size) {
  auto& pieces = regions_[region];
  const std::uint64_t end = saturating_add(begin, size);
  if (begin == end) return;
  auto at = pieces.lower_bound(begin);
  if (at != pieces.begin()) {
    Piece& before = std::prev(at)->second;
    if (before.end > end) pieces.emplace(end, before);  // the write leaves something on both sides
    before.end = std::min(before.end, begin);
  }
  while (at != pieces.end() && at->first < end) {
    if (at->second.end > end) pieces.emplace(end, at->second);
    at = pieces.erase(at);
  }
}

std::optional<Origin> Copies::find(unsigned region, std::uint64_t address, std::uint64_t size) const {
  const auto& pieces = regions_[region];
  auto at = pieces.upper_bound(address);
  if (at == pieces.begin()) return std::nullopt;
  const Piece& piece = std::prev(at)->second;
  if (saturating_add(address, size) > piece.end || address >= piece.end) return std::nullopt;
  return Origin{piece.origin_of(address), piece.destination, piece.source};
}

std::optional<CopiedPiece> Copies::first_piece(unsigned region, std::uint64_t address, std::uint64_t size) const {
  const auto& pieces = regions_[region];
  auto at = pieces.upper_bound(address);
  if (at == pieces.begin()) return std::nullopt;
  const Piece& piece = std::prev(at)->second;
  if (address >= piece.end) return std::nullopt;
  return CopiedPiece{0, piece.origin_of(address), std::min(size, piece.end - address)};
}

void Copies::append_pieces(unsigned region, std::uint64_t begin, std::uint64_t size,
                           std::vector<CopiedPiece>& found) const {
  const auto& pieces = regions_[region];
  const std::uint64_t end = saturating_add(begin, size);
  auto at = pieces.upper_bound(begin);
  if (at != pieces.begin()) --at;
  for (; at != pieces.end() && at->first < end; ++at) {
    const std::uint64_t low = std::max(begin, at->first), high = std::min(end, at->second.end);
    if (low < high) found.push_back({low - begin, at->second.origin_of(low), high - low});
  }
}

}  // namespace weightmill
