#include "sparsity.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weightmill/base/error.h>
#include <testkit/random.h>

namespace weightmill {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A tensor and one way to store it.
struct Example {
  Shape shape;
  std::vector<std::uint8_t> dense;
  std::vector<std::int64_t> blocks;  ///< size of the block on each axis, 1 where it is not cut
  SparseLayout layout;
  std::vector<std::uint8_t> values;
};

/// Writes `example.layout.levels` and `values` by asking, for every prefix of level coordinates, whether anything is
/// there: slow, and unlike the reader in every step.
class SlowEncoder {
 public:
  explicit SlowEncoder(Example& example) : example_(example) {
    for (std::size_t i = 0; i < n_levels(); ++i) {
      SparseLevel& level = example_.layout.levels[i];
      level.extent = extent(i);
      if (!level.dense) level.segments.assign(1, 0);
    }
    put(0);
  }

 private:
  std::size_t n_levels() const { return example_.layout.levels.size(); }
  std::size_t rank() const { return example_.shape.size(); }
  std::size_t axis(std::size_t level) const { return static_cast<std::size_t>(example_.layout.traversal_order[level]); }

  std::int64_t extent(std::size_t level) const {
    const std::size_t a = axis(level);
    if (a < rank()) return example_.shape[a] / example_.blocks[a];
    return example_.blocks[static_cast<std::size_t>(example_.layout.block_map[a - rank()])];
  }

  void put(std::size_t depth) {
    if (depth == n_levels()) {
      example_.values.push_back(*element());
      return;
    }
    SparseLevel& level = example_.layout.levels[depth];
    coordinates_.push_back(0);
    for (std::int64_t i = 0; i < extent(depth); ++i) {
      coordinates_.back() = i;
      if (!level.dense && !anything(depth + 1)) continue;
      if (!level.dense) level.indices.push_back(i);
      put(depth + 1);
    }
    coordinates_.pop_back();
    if (!level.dense) level.segments.push_back(static_cast<std::int64_t>(level.indices.size()));
  }

  bool anything(std::size_t depth) {
    if (depth == n_levels()) return *element() != 0;
    bool found = false;
    coordinates_.push_back(0);
    for (std::int64_t i = 0; i < extent(depth) && !found; ++i) {
      coordinates_.back() = i;
      found = anything(depth + 1);
    }
    coordinates_.pop_back();
    return found;
  }

  const std::uint8_t* element() const {
    std::vector<std::int64_t> index(rank(), 0);
    for (std::size_t level = 0; level < n_levels(); ++level) {
      const std::size_t a = axis(level);
      const std::size_t cut = a < rank() ? a : static_cast<std::size_t>(example_.layout.block_map[a - rank()]);
      index[cut] += coordinates_[level] * (a < rank() ? example_.blocks[cut] : 1);
    }
    std::int64_t place = 0;
    for (std::size_t a = 0; a < rank(); ++a) place = place * example_.shape[a] + index[a];
    return &example_.dense[static_cast<std::size_t>(place)];
  }

  Example& example_;
  std::vector<std::int64_t> coordinates_;
};

void shuffle(std::vector<std::int64_t>& numbers, testkit::Random& random) {
  for (std::size_t i = numbers.size(); i > 1; --i) {
    std::swap(numbers[i - 1], numbers[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(i) - 1))]);
  }
}

/// Any rank to 4, any axes cut into blocks, any order of levels, any of them sparse.
Example random_example(std::uint64_t seed) {
  testkit::Random random(seed);
  Example example;
  for (std::int64_t rank = random.integer(1, 4); rank > 0; --rank) {
    example.blocks.push_back(random.chance(0.4) ? random.integer(2, 4) : 1);
    example.shape.push_back(example.blocks.back() * random.integer(1, 4));
    if (example.blocks.back() > 1)
      example.layout.block_map.push_back(static_cast<std::int64_t>(example.blocks.size()) - 1);
  }
  shuffle(example.layout.block_map, random);
  example.dense.resize(n_elements(example.shape, "example"));
  const double density = random.unit();
  for (auto& value : example.dense)
    value = random.chance(density) ? static_cast<std::uint8_t>(random.integer(0, 255)) : 0;
  auto& order = example.layout.traversal_order;
  order.resize(example.shape.size() + example.layout.block_map.size());
  std::iota(order.begin(), order.end(), 0);
  shuffle(order, random);
  for (const std::int64_t axis : order) {
    const bool inside_block = axis >= static_cast<std::int64_t>(example.shape.size());
    example.layout.levels.push_back({.dense = inside_block || random.chance(0.5)});
  }
  SlowEncoder encode(example);
  return example;
}

TEST(Densify, UndoesAnyLayout) {
  for (const std::uint64_t seed : testkit::seeds(500)) {
    SCOPED_TRACE(seed);
    const Example example = random_example(seed);
    EXPECT_EQ(densify(example.layout, example.shape, 1, example.values, "example"), example.dense);
  }
}

/// [[1, 0, 2], [0, 0, 3]], rows dense, columns sparse.
Example rows() {
  Example example;
  example.shape = {2, 3};
  example.layout.traversal_order = {0, 1};
  example.layout.levels = {{.dense = true, .extent = 2},
                           {.dense = false, .extent = 0, .segments = {0, 2, 3}, .indices = {0, 2, 2}}};
  example.values = {1, 2, 3};
  return example;
}

TEST(Densify, FillsRowsFromColumnIndices) {
  const Example example = rows();
  EXPECT_THAT(densify(example.layout, example.shape, 1, example.values, "t"), ElementsAre(1, 0, 2, 0, 0, 3));
}

TEST(Densify, MovesWholeElements) {
  Example example = rows();
  example.values = {1, 9, 2, 8, 3, 7};
  EXPECT_THAT(densify(example.layout, example.shape, 2, example.values, "t"),
              ElementsAre(1, 9, 0, 0, 2, 8, 0, 0, 0, 0, 3, 7));
}

struct Refusal {
  const char* says;
  std::function<void(Example&)> spoil;
};

const std::vector<Refusal>& refusals() {
  static const std::vector<Refusal> list{
      {"axes and blocks",
       [](Example& e) {
         e.shape = {};
         e.layout = {};
       }},
      {"axes and blocks", [](Example& e) { e.shape.assign(17, 1); }},
      {"lists 1 levels", [](Example& e) { e.layout.levels.pop_back(); }},
      {"in an order of 1", [](Example& e) { e.layout.traversal_order.pop_back(); }},
      {"no elements",
       [](Example& e) {
         e.shape = {2, 0};
       }},
      {"no permutation",
       [](Example& e) {
         e.layout.traversal_order = {1, 1};
       }},
      {"no permutation",
       [](Example& e) {
         e.layout.traversal_order = {0, 2};
       }},
      {"no permutation",
       [](Example& e) {
         e.layout.traversal_order = {-1, 0};
       }},
      {"extent 3, wanted 2", [](Example& e) { e.layout.levels[0].extent = 3; }},
      {"segment bounds", [](Example& e) { e.layout.levels[1].segments.pop_back(); }},
      {"segment bounds", [](Example& e) { e.layout.levels[1].segments[0] = 1; }},
      {"segment bounds", [](Example& e) { e.layout.levels[1].segments[2] = 4; }},
      {"descend", [](Example& e) { e.layout.levels[1].segments[1] = 7; }},
      {"descend", [](Example& e) { e.layout.levels[1].segments[1] = -1; }},
      {"ascending", [](Example& e) { e.layout.levels[1].indices[1] = 0; }},
      {"ascending", [](Example& e) { e.layout.levels[1].indices[1] = 3; }},
      {"ascending", [](Example& e) { e.layout.levels[1].indices[0] = -1; }},
      {"stores 2 bytes", [](Example& e) { e.values.pop_back(); }},
      {"stores 4 bytes", [](Example& e) { e.values.push_back(0); }},
  };
  return list;
}

std::string refusal_of(const Example& example) {
  try {
    densify(example.layout, example.shape, 1, example.values, "tensor 7");
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::bad_file);
    return error.what();
  }
  return "nothing refused";
}

TEST(Densify, RefusesLayoutsThatDoNotFit) {
  for (const Refusal& refusal : refusals()) {
    Example example = rows();
    refusal.spoil(example);
    EXPECT_THAT(refusal_of(example), testing::AllOf(HasSubstr("tensor 7"), HasSubstr(refusal.says)));
  }
}

TEST(Densify, RefusesBlocksThatDoNotFit) {
  Example example;
  example.shape = {4};
  example.layout = {.traversal_order = {0, 1},
                    .block_map = {0},
                    .levels = {{.dense = true, .extent = 2}, {.dense = true, .extent = 2}}};
  example.values = {1, 2, 3, 4};
  EXPECT_EQ(refusal_of(example), "nothing refused");
  const Example good = example;
  example.layout.levels[1].extent = 3;
  EXPECT_THAT(refusal_of(example), HasSubstr("do not divide"));
  example.layout.levels[1].extent = 0;
  EXPECT_THAT(refusal_of(example), HasSubstr("do not divide"));
  example = good;
  example.layout.levels[1].dense = false;
  EXPECT_THAT(refusal_of(example), HasSubstr("not stored densely"));
  example = good;
  example.layout.block_map = {1};
  EXPECT_THAT(refusal_of(example), HasSubstr("cut axes"));
}

}  // namespace
}  // namespace weightmill
