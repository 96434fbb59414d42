#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <weightmill/base/sha256.h>

#include "findings.h"

namespace weightmill::verify {

/// The bytes [offset, offset + size) of `blob`, or an empty span and a finding where they are not all there.
inline std::span<const std::uint8_t> bytes_at(std::span<const std::uint8_t> blob, std::uint64_t offset,
                                              std::uint64_t size, const std::string& place, Findings& findings) {
  if (offset <= blob.size() && size <= blob.size() - offset) {
    return blob.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
  }
  findings.add(place, fmt::format("offset {} and size {}", offset, size),
               fmt::format("a range within {} bytes", blob.size()));
  return {};
}

/// A finding where the bytes are not those that the manifest was written for.
inline void check_digest(std::span<const std::uint8_t> bytes, const std::string& stated, const std::string& place,
                         Findings& findings) {
  if (stated.empty()) return;
  if (const std::string digest = sha256_hex(bytes); digest != stated)
    findings.add(place, "SHA-256 " + digest, stated + " as stated");
}

struct ByteRange {
  std::uint64_t begin, end;
};

/// A finding for each part of [0, size) that no range covers, and for each that two of them share.
inline void check_tiling(std::vector<ByteRange> ranges, std::uint64_t size, const std::string& what,
                         Findings& findings) {
  std::erase_if(ranges, [](const ByteRange& r) { return r.begin == r.end; });
  std::sort(ranges.begin(), ranges.end(), [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  std::uint64_t at = 0;
  for (const ByteRange& range : ranges) {
    if (range.begin > at)
      findings.add("", fmt::format("{}: bytes {}..{} that nothing refers to", what, at, range.begin), "no such bytes");
    if (range.begin < at)
      findings.add("", fmt::format("{}: bytes {}..{} used twice", what, range.begin, at), "separate ranges");
    at = std::max(at, range.end);
  }
  if (at < size)
    findings.add("", fmt::format("{}: bytes {}..{} that nothing refers to", what, at, size), "no such bytes");
}

}  // namespace weightmill::verify
