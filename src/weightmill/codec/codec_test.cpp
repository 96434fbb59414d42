#include "codec.h"

#include <gtest/gtest.h>

namespace weightmill::mlw {
namespace {
TEST(Codec, EmptyInputGivesAnEmptyStream) { EXPECT_TRUE(encode({}, Effort::reference).empty()); }
}  // namespace
}  // namespace weightmill::mlw
