#include "bits.h"

#include <gtest/gtest.h>

namespace weightmill {
namespace {

TEST(Bits, CeilDivAndCeilTo) {
  EXPECT_EQ(ceil_div(0u, 4u), 0u);
  EXPECT_EQ(ceil_div(5u, 4u), 2u);
  EXPECT_EQ(ceil_div(~0u, 2u), 0x80000000u);
  EXPECT_EQ(ceil_to(16u, 16u), 16u);
  EXPECT_EQ(ceil_to(17u, 16u), 32u);
}

TEST(Bits, IndexBits) {
  EXPECT_EQ(index_bits(0), 0u);
  EXPECT_EQ(index_bits(1), 0u);
  EXPECT_EQ(index_bits(2), 1u);
  EXPECT_EQ(index_bits(32), 5u);
  EXPECT_EQ(index_bits(33), 6u);
}

}  // namespace
}  // namespace weightmill
