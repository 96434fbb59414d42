#include "packed.h"

#include <gtest/gtest.h>

namespace weightmill {
namespace {

TEST(Packed, NamesAreTheWordsOfManifests) {
  EXPECT_EQ(name_of(Traversal::part_kernel_first), "part_kernel_first");
  EXPECT_EQ(name_of(NpuBlockType::vector_product), "vector_product");
  EXPECT_EQ(name_of(StreamFormat::fast_sparse), "fast_sparse");
  EXPECT_EQ(name_of(ScalingRule::v2020), "2020");
  EXPECT_EQ(name_of(RecordFormat::bias48_scale15), "bias48_scale15");
}

TEST(Packed, AValueOutsideTheEnumerationIsUnknown) { EXPECT_EQ(name_of(static_cast<Traversal>(9)), "unknown"); }

}  // namespace
}  // namespace weightmill
