#include "broadcast.h"

#include <algorithm>

namespace weightmill {
namespace {

/// Extent of axis `i`, counted from the innermost; 1 beyond the outermost.
std::uint64_t extent_from_right(const Shape& shape, std::size_t i) {
  return i < shape.size() ? static_cast<std::uint64_t>(shape[shape.size() - 1 - i]) : 1;
}

}  // namespace

std::optional<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::uint64_t x = extent_from_right(a, i), y = extent_from_right(b, i);
    if (x != y && x != 1 && y != 1) return std::nullopt;
    result[result.size() - 1 - i] = static_cast<std::int64_t>(x == 1 ? y : x);
  }
  return result;
}

BroadcastIndex::BroadcastIndex(const Shape& own, const Shape& target) {
  std::uint64_t stride = 1;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const std::uint64_t extent = extent_from_right(target, i), own_extent = extent_from_right(own, i);
    const Axis axis{extent, own_extent == 1 ? 0 : stride};
    stride *= own_extent;
    if (extent == 1) continue;
    if (!axes_.empty() && axes_.back().stride * axes_.back().extent == axis.stride) {
      axes_.back().extent *= extent;
    } else {
      axes_.push_back(axis);
    }
  }
  if (!axes_.empty() && axes_.front().stride == 0) run_ = axes_.front().extent;
  std::uint64_t size = 1;
  for (const Axis& axis : axes_) {
    size *= axis.extent;
    if (axis.stride != 0) period_ = size;
  }
}

std::uint64_t BroadcastIndex::at(std::uint64_t flat) const noexcept {
  std::uint64_t own = 0;
  for (const Axis& axis : axes_) {
    own += flat % axis.extent * axis.stride;
    flat /= axis.extent;
  }
  return own;
}

void BroadcastIndex::fill(std::uint64_t first, std::vector<std::uint64_t>& out) const {
  const std::uint64_t extent = axes_.empty() ? 1 : axes_.front().extent;
  const std::uint64_t stride = axes_.empty() ? 0 : axes_.front().stride;
  for (std::size_t i = 0; i < out.size();) {
    const std::uint64_t flat = first + i;
    const std::uint64_t inner = flat % extent;
    const std::uint64_t n = std::min<std::uint64_t>(out.size() - i, axes_.empty() ? out.size() : extent - inner);
    std::uint64_t own = at(flat);
    for (std::uint64_t k = 0; k < n; ++k, own += stride) out[i++] = own;
  }
}

}  // namespace weightmill
