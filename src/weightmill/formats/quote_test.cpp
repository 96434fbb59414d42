#include "quote.h"

#include <gtest/gtest.h>

namespace weightmill {
namespace {

TEST(Quote, KeepsPrintableNames) { EXPECT_EQ(quote("conv/kernel:0"), "'conv/kernel:0'"); }

TEST(Quote, HidesControlCharactersAndBrokenUtf8) { EXPECT_EQ(quote("a\n\x1b[31m\xff"), "'a??[31m?'"); }

TEST(Quote, CutsLongNames) { EXPECT_EQ(quote(std::string(1000, 'x')), "'" + std::string(80, 'x') + "…'"); }

}  // namespace
}  // namespace weightmill
