#include "rounding.h"

#include <gtest/gtest.h>

namespace weightmill {
namespace {

TEST(Rounding, RulesDifferOnlyOnTies) {
  EXPECT_EQ(round_half_even(2.5), 2.0);
  EXPECT_EQ(round_half_even(3.5), 4.0);
  EXPECT_EQ(round_half_even(-2.5), -2.0);
  EXPECT_EQ(round_half_away(2.5), 3.0);
  EXPECT_EQ(round_half_away(-2.5), -3.0);
  EXPECT_EQ(round_half_up(2.5), 3.0);
  EXPECT_EQ(round_half_up(-2.5), -2.0);
  for (const double x : {2.4999, 2.5001, -2.4999, -2.5001}) {
    EXPECT_EQ(round_half_even(x), round_half_away(x)) << x;
    EXPECT_EQ(round_half_even(x), round_half_up(x)) << x;
  }
}

}  // namespace
}  // namespace weightmill
