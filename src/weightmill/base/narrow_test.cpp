#include "narrow.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace weightmill {
namespace {

TEST(Narrow, KeepsWhatFits) {
  EXPECT_EQ(narrow<std::int8_t>(-128, "x"), -128);
  EXPECT_EQ(narrow<std::uint32_t>(std::int64_t{4294967295}, "x"), 4294967295u);
}

TEST(Narrow, RefusesWhatDoesNotFit) {
  EXPECT_THROW(narrow<std::int8_t>(128, "x"), Error);
  EXPECT_THROW(narrow<std::uint8_t>(-1, "x"), Error);
  EXPECT_THROW(narrow<std::int32_t>(std::uint64_t{1} << 40, "x"), Error);
}

TEST(CheckedMultiply, RefusesOverflow) {
  EXPECT_EQ(checked_multiply<std::size_t>(6, 7, "x"), 42u);
  EXPECT_THROW(checked_multiply<std::size_t>(std::size_t{1} << 40, std::size_t{1} << 40, "x"), Error);
}

}  // namespace
}  // namespace weightmill
