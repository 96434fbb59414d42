#include "shape.h"

#include <limits>

#include <gtest/gtest.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

TEST(Shape, CountsElements) {
  EXPECT_EQ(n_elements({}, "t"), 1u);
  EXPECT_EQ(n_elements({2, 3, 4}, "t"), 24u);
  EXPECT_EQ(n_elements({kHuge, 0, kHuge}, "t"), 0u);
  EXPECT_THROW(n_elements({-1, 3}, "t"), Error);
  EXPECT_THROW(n_elements({kHuge, 2}, "t"), Error);
}

TEST(Shape, CountsBytes) {
  EXPECT_EQ(size_bytes({3}, DType::i4, "t"), 2u);
  EXPECT_EQ(size_bytes({3}, DType::f32, "t"), 12u);
  EXPECT_THROW(size_bytes({3}, DType::other, "t"), Error);
  EXPECT_THROW(size_bytes({kHuge}, DType::f32, "t"), Error);
}

TEST(Shape, IsWrittenAsAList) { EXPECT_EQ(to_string({1, -1, 3}), "[1, -1, 3]"); }

}  // namespace
}  // namespace weightmill
