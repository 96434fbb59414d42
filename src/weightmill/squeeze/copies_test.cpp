#include "copies.h"

#include <map>

#include <gtest/gtest.h>

#include <testkit/random.h>

namespace weightmill {
namespace {

TEST(Copies, KnowWhereBytesCameFrom) {
  Copies copies;
  copies.copy(1, 1000, 64, 100);
  const auto origin = copies.find(1, 1010, 90);
  ASSERT_TRUE(origin);
  EXPECT_EQ(origin->offset, 74u);
  EXPECT_EQ(origin->destination, 1000u);
  EXPECT_EQ(origin->source, 64u);
  EXPECT_FALSE(copies.find(1, 1010, 91));
  EXPECT_FALSE(copies.find(1, 999, 1));
  EXPECT_FALSE(copies.find(2, 1010, 1));
}

TEST(Copies, WhatSurvivesAWriteKeepsItsOrigin) {
  Copies copies;
  copies.copy(1, 1000, 64, 100);
  copies.overwrite(1, 1020, 10);
  EXPECT_TRUE(copies.find(1, 1000, 20));
  EXPECT_FALSE(copies.find(1, 1000, 21));
  EXPECT_FALSE(copies.find(1, 1029, 1));
  const auto rest = copies.find(1, 1030, 70);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->offset, 94u);
  EXPECT_EQ(rest->destination, 1000u);
}

/// Against one entry for each byte.
TEST(Copies, AgreeWithByteByByteBookkeeping) {
  for (const std::uint64_t seed : testkit::seeds(50)) {
    SCOPED_TRACE(seed);
    testkit::Random random(seed);
    Copies copies;
    std::map<std::uint64_t, std::uint64_t> bytes;  // address -> offset
    for (int step = 0; step < 40; ++step) {
      const auto begin = static_cast<std::uint64_t>(random.integer(0, 60)),
                 size = static_cast<std::uint64_t>(random.integer(0, 30));
      const bool is_copy = random.chance(0.6);
      if (is_copy) copies.copy(3, begin, 100 * static_cast<std::uint64_t>(step), size);
      else copies.overwrite(3, begin, size);
      for (std::uint64_t i = 0; i < size; ++i) {
        bytes.erase(begin + i);
        if (is_copy) bytes[begin + i] = 100 * static_cast<std::uint64_t>(step) + i;
      }
      std::vector<CopiedPiece> pieces;
      copies.append_pieces(3, 0, 200, pieces);
      std::map<std::uint64_t, std::uint64_t> found;
      for (const CopiedPiece& piece : pieces) {
        for (std::uint64_t i = 0; i < piece.size; ++i) found[piece.position + i] = piece.offset + i;
      }
      ASSERT_EQ(found, bytes);
    }
  }
}

}  // namespace
}  // namespace weightmill
