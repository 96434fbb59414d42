#include "progress_bar.h"

#include <gtest/gtest.h>

#include "console.h"

namespace weightmill::cli {
namespace {

TEST(ProgressLine, ShowsShareSpeedAndTimeLeft) {
  EXPECT_EQ(progress_line("packing", 12, 24, 6.0), "packing  ████████████             12/24  2.0/s  6 s left");
  EXPECT_EQ(progress_line("packing", 1, 48, 0.0), "packing  ▌                        1/48");
  EXPECT_EQ(progress_line("packing", 24, 24, 4.0), "packing  ████████████████████████ 24/24  6.0/s");
  EXPECT_EQ(progress_line("reading", 7, 0, 1.0), "reading  7");
}

TEST(ProgressBar, GivesNoCallbackWithoutATerminal) { EXPECT_FALSE(ProgressBar(/*quiet=*/true).callback()); }

TEST(Table, AlignsByCodePoints) {
  EXPECT_EQ(format_table({"name", "bytes"}, {{"ä", "1"}, {"layer", "10 000"}}, "<>"),
            "name    bytes\n"
            "ä           1\n"
            "layer  10 000\n");
}

TEST(Table, GroupsDigits) {
  EXPECT_EQ(with_thin_groups(0), "0");
  EXPECT_EQ(with_thin_groups(999), "999");
  EXPECT_EQ(with_thin_groups(1234567), "1 234 567");
}

}  // namespace
}  // namespace weightmill::cli
