#include "sparsity.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

/// Twice the most axes that TFLite's kernels take.
constexpr std::size_t kMaxLevels = 16;

/// A level as the expansion walks it: child i of a node lies `position(i) * step` elements after the node.
struct Walk {
  const SparseLevel* level = nullptr;
  std::uint64_t extent = 0;
  std::uint64_t step = 0;
};

[[noreturn]] void refuse(std::string_view where, std::string_view why) {
  fail(ErrorCode::bad_file, where, fmt::format("is sparse, and {}", why));
}

void check_counts(const SparseLayout& layout, const Shape& shape, std::string_view where) {
  const std::size_t n_levels = shape.size() + layout.block_map.size();
  if (n_levels == 0 || n_levels > kMaxLevels)
    refuse(where, fmt::format("has {} axes and blocks, wanted 1 to {}", n_levels, kMaxLevels));
  if (layout.levels.size() != n_levels || layout.traversal_order.size() != n_levels) {
    refuse(where,
           fmt::format("lists {} levels in an order of {}, wanted {} for {} axes and {} blocks", layout.levels.size(),
                       layout.traversal_order.size(), n_levels, shape.size(), layout.block_map.size()));
  }
  if (n_elements(shape, where) == 0) refuse(where, fmt::format("has no elements: shape {}", to_string(shape)));
}

/// `numbers` are distinct and in [0, limit).
bool all_distinct(std::vector<std::int64_t> numbers, std::size_t limit) {
  std::sort(numbers.begin(), numbers.end());
  if (std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end()) return false;
  return numbers.empty() || (numbers.front() >= 0 && std::cmp_less(numbers.back(), limit));
}

void check_order(const SparseLayout& layout, const Shape& shape, std::string_view where) {
  if (!all_distinct(layout.traversal_order, layout.levels.size())) {
    refuse(where, fmt::format("its traversal order {} is no permutation", layout.traversal_order));
  }
  if (!all_distinct(layout.block_map, shape.size())) {
    refuse(where, fmt::format("its blocks cut axes {} of {}, wanted different ones", layout.block_map, shape.size()));
  }
}

/// Sizes of the blocks, by the axis they cut; 1 for an axis that is not cut.
std::vector<std::int64_t> block_sizes(const SparseLayout& layout, const Shape& shape, std::string_view where) {
  std::vector<std::int64_t> sizes(shape.size(), 1);
  for (std::size_t i = 0; i < layout.levels.size(); ++i) {
    const auto axis = static_cast<std::size_t>(layout.traversal_order[i]);
    if (axis < shape.size()) continue;
    const auto cut = static_cast<std::size_t>(layout.block_map[axis - shape.size()]);
    const SparseLevel& level = layout.levels[i];
    if (!level.dense) refuse(where, fmt::format("the inside of its blocks along axis {} is not stored densely", cut));
    if (level.extent < 1 || shape[cut] % level.extent != 0) {
      refuse(where,
             fmt::format("its blocks of {} do not divide axis {} of shape {}", level.extent, cut, to_string(shape)));
    }
    sizes[cut] = level.extent;
  }
  return sizes;
}

/// Elements from one index of an axis to the next, row-major.
std::vector<std::int64_t> strides_of(const Shape& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

std::vector<Walk> plan_walk(const SparseLayout& layout, const Shape& shape, std::string_view where) {
  const std::vector<std::int64_t> blocks = block_sizes(layout, shape, where);
  const std::vector<std::int64_t> strides = strides_of(shape);
  std::vector<Walk> walk;
  for (std::size_t i = 0; i < layout.levels.size(); ++i) {
    const auto axis = static_cast<std::size_t>(layout.traversal_order[i]);
    const bool inside_block = axis >= shape.size();
    const std::size_t cut = inside_block ? static_cast<std::size_t>(layout.block_map[axis - shape.size()]) : axis;
    const std::int64_t extent = inside_block ? blocks[cut] : shape[cut] / blocks[cut];
    const std::int64_t step = inside_block ? strides[cut] : strides[cut] * blocks[cut];
    if (layout.levels[i].dense && layout.levels[i].extent != extent) {
      refuse(where, fmt::format("level {} has extent {}, wanted {}", i, layout.levels[i].extent, extent));
    }
    walk.push_back({&layout.levels[i], static_cast<std::uint64_t>(extent), static_cast<std::uint64_t>(step)});
  }
  return walk;
}

void check_children(const SparseLevel& level, std::uint64_t extent, std::size_t begin, std::size_t end,
                    std::string_view where) {
  std::int64_t last = -1;
  for (std::size_t i = begin; i < end; ++i) {
    if (level.indices[i] <= last || !std::cmp_less(level.indices[i], extent)) {
      refuse(where, fmt::format("index {} of a level is {} after {}, wanted ascending ones below {}", i,
                                level.indices[i], last, extent));
    }
    last = level.indices[i];
  }
}

/// Checks a sparse level under `n_nodes` nodes.
void check_sparse_level(const Walk& walk, std::uint64_t n_nodes, std::string_view where) {
  const SparseLevel& level = *walk.level;
  if (level.segments.size() != n_nodes + 1 || level.segments.front() != 0 ||
      !std::cmp_equal(level.segments.back(), level.indices.size())) {
    refuse(where, fmt::format("a level has {} segment bounds for {} nodes and {} indices", level.segments.size(),
                              n_nodes, level.indices.size()));
  }
  if (!std::is_sorted(level.segments.begin(), level.segments.end()))
    refuse(where, "the segment bounds of a level descend");
  for (std::size_t node = 0; node < n_nodes; ++node) {
    check_children(level, walk.extent, static_cast<std::size_t>(level.segments[node]),
                   static_cast<std::size_t>(level.segments[node + 1]), where);
  }
}

/// Number of elements that the layout stores. No level can have more nodes than the dense tensor has elements.
std::uint64_t checked_leaves(const std::vector<Walk>& walk, std::string_view where) {
  std::uint64_t n_nodes = 1;
  for (const Walk& step : walk) {
    if (!step.level->dense) check_sparse_level(step, n_nodes, where);
    n_nodes = step.level->dense ? n_nodes * step.extent : step.level->indices.size();
  }
  return n_nodes;
}

/// The children of one node that are still to be visited.
struct Cursor {
  std::uint64_t next = 0, end = 0;  ///< numbers of the children, which count through the whole level
  std::uint64_t first = 0;          ///< of the node's children
  std::uint64_t base = 0;           ///< the node's place in the dense tensor
};

Cursor children_of(std::uint64_t node, std::uint64_t base, const Walk& walk) {
  if (walk.level->dense) return {node * walk.extent, (node + 1) * walk.extent, node * walk.extent, base};
  const auto begin = static_cast<std::uint64_t>(walk.level->segments[node]);
  return {begin, static_cast<std::uint64_t>(walk.level->segments[node + 1]), begin, base};
}

std::uint64_t place_of(std::uint64_t child, const Cursor& cursor, const Walk& walk) {
  const std::uint64_t position =
      walk.level->dense ? child - cursor.first : static_cast<std::uint64_t>(walk.level->indices[child]);
  return cursor.base + position * walk.step;
}

/// Calls visit(number of the stored element, its place in the dense tensor) for each, in the order of storage.
template <class Visit>
void for_each_leaf(const std::vector<Walk>& walk, Visit visit) {
  std::vector<Cursor> open{children_of(0, 0, walk[0])};
  while (!open.empty()) {
    Cursor& cursor = open.back();
    if (cursor.next == cursor.end) {
      open.pop_back();
      continue;
    }
    const std::uint64_t child = cursor.next++;
    const std::uint64_t place = place_of(child, cursor, walk[open.size() - 1]);
    if (open.size() == walk.size()) {
      visit(child, place);
    } else {
      open.push_back(children_of(child, place, walk[open.size()]));
    }
  }
}

}  // namespace

std::vector<std::uint8_t> densify(const SparseLayout& layout, const Shape& shape, std::size_t element_bytes,
                                  std::span<const std::uint8_t> values, std::string_view where) {
  check_counts(layout, shape, where);
  check_order(layout, shape, where);
  const std::vector<Walk> walk = plan_walk(layout, shape, where);
  const std::uint64_t n_stored = checked_leaves(walk, where);
  if (values.size() / element_bytes != n_stored || values.size() % element_bytes != 0) {
    refuse(where, fmt::format("stores {} bytes, wanted {} elements of {}", values.size(), n_stored, element_bytes));
  }
  std::vector<std::uint8_t> dense(n_elements(shape, where) * element_bytes);
  for_each_leaf(walk, [&](std::uint64_t leaf, std::uint64_t place) {
    std::memcpy(&dense[place * element_bytes], &values[leaf * element_bytes], element_bytes);
  });
  return dense;
}

}  // namespace weightmill
