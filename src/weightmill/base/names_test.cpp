#include "names.h"

#include <gtest/gtest.h>

namespace weightmill {
namespace {

TEST(Nearest, FindsTheLikelyWord) {
  const std::vector<std::string> verbs{"pack", "verify", "inspect"};
  EXPECT_EQ(nearest("pakc", {"pack"}), std::nullopt);  // two edits in four letters: too far
  EXPECT_EQ(nearest("pak", verbs), "pack");
  EXPECT_EQ(nearest("verfy", verbs), "verify");
  EXPECT_EQ(nearest("inspcet", verbs), "inspect");
  EXPECT_EQ(nearest("quantize", verbs), std::nullopt);
}

TEST(Nearest, TiesGoToTheEarlier) { EXPECT_EQ(nearest("aX", {"ab", "ac"}), "ab"); }

TEST(NearestName, SeesThroughSeparatorsAndCase) {
  const std::vector<std::string> nodes{"/head/box/Conv", "/head/cls/Conv", "/head/cls/Conv_1"};
  EXPECT_EQ(nearest_name("head.cls", nodes), "/head/cls/Conv");
  EXPECT_EQ(nearest_name("/head/cls/conv", nodes), "/head/cls/Conv");
  EXPECT_EQ(nearest_name("tail", nodes), std::nullopt);
  EXPECT_EQ(nearest_name("...", nodes), std::nullopt);
}

TEST(MatchesPattern, KnowsStarsAndQuestionMarks) {
  EXPECT_TRUE(matches_pattern("/head/cls/Conv", "/head/*"));
  EXPECT_TRUE(matches_pattern("/head/cls/Conv", "*cls*"));
  EXPECT_TRUE(matches_pattern("conv_1", "conv_?"));
  EXPECT_TRUE(matches_pattern("aXbXc", "a*X*c"));
  EXPECT_TRUE(matches_pattern("", "*"));
  EXPECT_TRUE(matches_pattern("layer[0]*", "layer[0]*"));
  EXPECT_FALSE(matches_pattern("conv_12", "conv_?"));
  EXPECT_FALSE(matches_pattern("conv", "con"));
  EXPECT_FALSE(matches_pattern("con", "conv*"));
  EXPECT_FALSE(matches_pattern("Conv", "conv"));
}

}  // namespace
}  // namespace weightmill
