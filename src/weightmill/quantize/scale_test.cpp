#include "scale.h"

#include <cmath>

#include <gtest/gtest.h>

#include "testkit/golden.h"
#include "testkit/npz.h"

namespace weightmill {
namespace {

TEST(TimesPow2, IsLdexp) {
  for (const double x : {0.0, 1.0, -3.7, 1e300, 1e-300, 5e-324}) {
    for (int e = -2200; e <= 2200; ++e) ASSERT_EQ(times_pow2(x, e), std::ldexp(x, e)) << x << " " << e;
  }
}

TEST(SplitPow2, PutsTheFractionAboveOneHalf) {
  EXPECT_EQ(split_pow2(0.0), (Pow2Split{0.0, 0}));
  EXPECT_EQ(split_pow2(1.0), (Pow2Split{1.0, 0}));
  EXPECT_EQ(split_pow2(3.0), (Pow2Split{0.75, 2}));
}

TEST(SplitPow2, CountsAHairAboveAPowerAsThePower) {
  EXPECT_EQ(split_pow2(std::nextafter(8.0, 9.0)).exponent, 3);
  EXPECT_EQ(split_pow2(8.0 * (1 + 0x1p-39)).exponent, 4);
}

TEST(CeilLog2, IsExactAtPowers) {
  EXPECT_EQ(ceil_log2(1.0), 0);
  EXPECT_EQ(ceil_log2(std::nextafter(1.0, 2.0)), 1);
  EXPECT_EQ(ceil_log2(8.0), 3);
}

TEST(GridForRange, WidensToZeroAndKeepsZeroExact) {
  EXPECT_EQ(grid_for_range(1.0, 2.55, -128, 127), (Grid{100.0, -128}));
  EXPECT_EQ(grid_for_range(-2.0, 1.0, -127, 127), (Grid{63.5, 0}));
  EXPECT_EQ(grid_for_range(0.0, 0.0, -128, 127).steps_per_unit, 0.0);
}

TEST(Scale, EqualsTheGoldenUnits) {
  const auto set = testkit::GoldenSet::open("convq/convq");
  const auto arrays = testkit::NpzFile::open(testkit::golden_dir() / "convq/convq.npz");
  if (!set || !arrays) GTEST_SKIP() << "convq not installed: set WEIGHTMILL_GOLDEN_DIR";
  for (const auto& entry : set->cases()) {
    const auto id = entry.at("id").get<std::string>() + "_";
    const auto doubles = [&](const char* name) { return arrays->at(id + name).as<double>(); };
    const auto integers = [&](const char* name) { return arrays->at(id + name).as<std::int64_t>(); };
    SCOPED_TRACE(id);
    if (entry.at("category") == "unit_affine") {
      const auto low = doubles("lo"), high = doubles("hi"), scale = doubles("scale");
      const auto code_low = integers("qlo"), code_high = integers("qhi"), zero = integers("zero");
      for (std::size_t i = 0; i < low.size(); ++i) {
        EXPECT_EQ(grid_for_range(low[i], high[i], static_cast<double>(code_low[i]), static_cast<double>(code_high[i])),
                  (Grid{scale[i], zero[i]}));
      }
    }
    if (entry.at("category") == "unit_pow2_split") {
      const auto x = doubles("x"), fraction = doubles("fraction");
      const auto exponent = integers("exponent");
      for (std::size_t i = 0; i < x.size(); ++i) {
        EXPECT_EQ(split_pow2(x[i]), (Pow2Split{fraction[i], static_cast<int>(exponent[i])})) << x[i];
      }
    }
  }
}

}  // namespace
}  // namespace weightmill
