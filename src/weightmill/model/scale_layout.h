#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <weightmill/model/shape.h>

namespace weightmill {

/// Which scale belongs to which element of a row-major tensor: per tensor, along one axis, in blocks along one axis, or
/// along the first axis and another one. The tensor is seen as [outer, length, inner], where `length` is the extent of
/// the axis.
struct ScaleLayout {
  std::uint64_t length = 1;
  std::uint64_t inner = 1;
  std::uint64_t block = 0;  ///< elements along the axis that share a scale; 0: one scale for the whole tensor
  bool per_inner = false;   ///< blocked: positions behind the axis have scales of their own
  std::uint64_t outer_run = 0;  ///< so many positions in front of the axis share scales, then come others; 0: all share

  std::uint64_t n_blocks() const { return (length + block - 1) / block; }

  /// One scale for each index along `axis`, or for each `block` of them. Requires: `axis` is one of the shape's.
  static ScaleLayout along(const Shape& shape, std::size_t axis, std::uint64_t block = 1) {
    ScaleLayout layout;
    layout.length = static_cast<std::uint64_t>(shape[axis]);
    for (std::size_t i = axis + 1; i < shape.size(); ++i) layout.inner *= static_cast<std::uint64_t>(shape[i]);
    layout.block = block;
    layout.per_inner = block > 1;
    return layout;
  }

  /// One scale for each pair of indices along axis 0 and `axis`. Requires: 0 < axis < rank.
  static ScaleLayout along_groups(const Shape& shape, std::size_t axis) {
    ScaleLayout layout = along(shape, axis);
    layout.outer_run = 1;
    for (std::size_t i = 1; i < axis; ++i) layout.outer_run *= static_cast<std::uint64_t>(shape[i]);
    return layout;
  }
};

/// Neighbouring elements whose scales are the same one, or neighbours too.
struct ScaleRun {
  std::uint64_t first = 0;  ///< element, counted from the first one asked for
  std::uint64_t count = 0;
  std::uint64_t scale = 0;  ///< number of the first element's scale
  bool advances = false;    ///< each element has the next scale; else all have this one
};

/// The run that begins with element `index` and has at most `limit` elements. `first` of the result is 0.
inline ScaleRun run_at(const ScaleLayout& layout, std::uint64_t index, std::uint64_t limit) {
  if (layout.block == 0) return {0, limit, 0, false};
  const std::uint64_t position = index % layout.inner;
  const std::uint64_t row = index / layout.inner;
  const std::uint64_t along = row % layout.length;
  const std::uint64_t outer_run = layout.per_inner ? 1 : layout.outer_run;
  const std::uint64_t outer = outer_run == 0 ? 0 : row / layout.length / outer_run;
  const std::uint64_t block = outer * layout.n_blocks() + along / layout.block;
  if (layout.inner > 1) {
    const std::uint64_t scale = layout.per_inner ? block * layout.inner + position : block;
    return {0, std::min(limit, layout.inner - position), scale, layout.per_inner};
  }
  if (layout.block == 1) return {0, std::min(limit, layout.length - along), block, true};
  const std::uint64_t end = std::min((along / layout.block + 1) * layout.block, layout.length);
  return {0, std::min(limit, end - along), block, false};
}

/// How many rows from element `index` on have the same scales, and lie within `limit` elements. `count`: of the run that
/// begins there, whose scales advance; where it is no whole row, there is one.
inline std::uint64_t rows_alike(const ScaleLayout& layout, std::uint64_t index, std::uint64_t count,
                                std::uint64_t limit) {
  const std::uint64_t row = layout.per_inner ? layout.inner : layout.length;
  if (index % row != 0 || count != row) return 1;
  const std::uint64_t along = index / layout.inner % layout.length;
  const std::uint64_t left = std::min(layout.block - along % layout.block, layout.length - along);
  if (layout.per_inner) return std::min(left, limit / row);
  if (layout.outer_run == 0) return limit / row;
  return std::min(layout.outer_run - index / row % layout.outer_run, limit / row);
}

}  // namespace weightmill
