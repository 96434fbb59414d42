#include "accelerator.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

TEST(Accelerator, MacsFollowFromTheUblocks) {
  for (const Accelerator& a : accelerators()) {
    SCOPED_TRACE(a.name);
    for (const BlockShape& ublock : a.ofm_ublocks) {
      const int cores = a.family == NpuFamily::u85 ? 1 : a.cores;  // a U85 ublock is the work of all cores
      EXPECT_EQ(ublock.width * ublock.height * ublock.depth * 8 * cores, a.macs_per_cycle);
    }
    EXPECT_TRUE(a.name.ends_with("-" + std::to_string(a.macs_per_cycle)));
  }
}

TEST(Accelerator, IsFoundByEitherSpelling) {
  for (const Accelerator& a : accelerators()) EXPECT_EQ(&find_accelerator(a.name), &a);
  EXPECT_EQ(find_accelerator("Ethos_U65_512").cores, 2);
}

TEST(Accelerator, RefusesAnUnknownNameAndSuggestsTheNearest) {
  try {
    find_accelerator("ethos-u55-182");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::bad_option);
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean ethos-u55-128?"));
    EXPECT_THAT(error.what(), testing::HasSubstr("ethos-u85-2048"));
  }
  EXPECT_THROW(find_accelerator(""), Error);
  EXPECT_THROW(find_accelerator(std::string(100000, 'x')), Error);
}

}  // namespace
}  // namespace weightmill
