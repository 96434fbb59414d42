#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <weightmill/model/shape.h>

namespace weightmill {

/// One level of a sparse tensor's storage tree, outermost first.
struct SparseLevel {
  bool dense = true;
  std::int64_t extent = 0;  ///< of the axis; given by the file for dense levels and for blocks
  std::vector<std::int64_t> segments{};  ///< sparse: node p has children [segments[p], segments[p + 1])
  std::vector<std::int64_t> indices{};  ///< sparse: each child's position on the axis, ascending within a node
};

/// How TFLite stores a sparse tensor of n axes, of which k are cut into blocks  [docs/tflite.md].
struct SparseLayout {
  std::vector<std::int64_t> traversal_order{};  ///< n + k; a permutation: level -> axis; n + j is the inside of block j
  std::vector<std::int64_t> block_map{};        ///< k: the axis that block j cuts
  std::vector<SparseLevel> levels{};            ///< n + k
};

/// Expands the stored `values` to the dense tensor of `shape`, row-major; elements that are not stored are zero bytes.
///
/// `element_bytes`: of one element, >= 1. The caller has bounded the size of the result.
/// Throws: bad_file if the layout does not fit the shape or itself, or the number of stored elements is another than
/// the layout says.
std::vector<std::uint8_t> densify(const SparseLayout& layout, const Shape& shape, std::size_t element_bytes,
                                  std::span<const std::uint8_t> values, std::string_view where);

}  // namespace weightmill
