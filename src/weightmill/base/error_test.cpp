#include "error.h"

#include <gtest/gtest.h>

namespace weightmill {
namespace {

TEST(Error, NamesWhereAndWhy) {
  try {
    fail(ErrorCode::bad_stream, "stream 3", "ends inside a header");
    FAIL() << "fail() returned";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "stream 3: ends inside a header");
    EXPECT_EQ(error.code, ErrorCode::bad_stream);
  }
}

TEST(Error, WithoutAPlaceIsTheReasonAlone) {
  EXPECT_STREQ(Error(ErrorCode::bad_option, "", "no input").what(), "no input");
}

TEST(Error, EveryCodeHasItsName) {
  EXPECT_EQ(name_of(ErrorCode::bad_option), "bad_option");
  EXPECT_EQ(name_of(ErrorCode::bad_file), "bad_file");
  EXPECT_EQ(name_of(ErrorCode::bad_request), "bad_request");
  EXPECT_EQ(name_of(ErrorCode::unsupported), "unsupported");
  EXPECT_EQ(name_of(ErrorCode::internal), "internal");
}

}  // namespace
}  // namespace weightmill
