#pragma once

#include <cstdint>

#include "slice.h"

namespace weightmill::mlw {

/// Bits that put_slice() writes for `slice`, header, palette and filler included, without making them.
/// The order of chunks costs nothing, so that each plane is rounded up to whole chunks by itself.
std::uint64_t slice_bits(const Slice& slice) noexcept;

}  // namespace weightmill::mlw
