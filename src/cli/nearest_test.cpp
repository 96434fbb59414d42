#include "nearest.h"

#include <gtest/gtest.h>

namespace weightmill::cli {
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

}  // namespace
}  // namespace weightmill::cli
