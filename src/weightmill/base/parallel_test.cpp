#include "parallel.h"

#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weightmill {
namespace {

TEST(ParallelFor, RunsEachIndexOnceForAnyNumberOfThreads) {
  for (const unsigned jobs : {0u, 1u, 2u, 7u, 64u}) {
    std::vector<int> hits(1000, 0);
    parallel_for(hits.size(), jobs, [&](std::size_t i) { hits[i] += 1; });
    EXPECT_EQ(hits, std::vector<int>(1000, 1)) << jobs;
  }
}

TEST(ParallelFor, DoesNothingForNothing) {
  parallel_for(0, 4, [](std::size_t) { FAIL(); });
}

TEST(ParallelFor, RethrowsTheLowestFailure) {
  for (const unsigned jobs : {1u, 2u, 8u}) {
    for (int repeat = 0; repeat < 50; ++repeat) {
      try {
        parallel_for(100, jobs, [](std::size_t i) {
          if (i >= 37) throw std::runtime_error(std::to_string(i));
        });
        FAIL();
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "37");
      }
    }
  }
}

TEST(ResolveJobs, NeverGivesZero) {
  EXPECT_GE(resolve_jobs(0), 1u);
  EXPECT_GE(resolve_jobs(-1), 1u);
  EXPECT_EQ(resolve_jobs(3), 3u);
}

}  // namespace
}  // namespace weightmill
