#include "dtype.h"

#include <gtest/gtest.h>

namespace weightmill {
namespace {

TEST(DType, KnowsItsNameAndSize) {
  EXPECT_EQ(name_of(DType::i8), "int8");
  EXPECT_EQ(name_of(DType::bf16), "bfloat16");
  EXPECT_EQ(name_of(DType::other), "other");
  EXPECT_EQ(size_bits(DType::u4), 4u);
  EXPECT_EQ(name_of(DType::u2), "uint2");
  EXPECT_EQ(size_bits(DType::i2), 2u);
  EXPECT_EQ(size_bits(DType::f64), 64u);
  EXPECT_EQ(size_bits(DType::boolean), 8u);
  EXPECT_EQ(size_bits(DType::other), 0u);
}

TEST(DType, IsFloatIntegerOrNeither) {
  EXPECT_TRUE(is_float(DType::f8e5m2));
  EXPECT_TRUE(is_integer(DType::i4));
  EXPECT_TRUE(is_integer(DType::u64));
  EXPECT_FALSE(is_integer(DType::boolean));
  EXPECT_FALSE(is_float(DType::i32));
}

}  // namespace
}  // namespace weightmill
