#include "weight_coder.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include <testkit/random.h>
#include <weightmill/base/error.h>

namespace weightmill {
namespace {

using ::testing::HasSubstr;
using testkit::Random;

FloatWeight matrix(std::int64_t rows, std::int64_t columns, std::shared_ptr<std::vector<float>> x) {
  FloatWeight weight;
  weight.name = "tensor w";
  weight.shape = {rows, columns};
  weight.channel_axis = 1;
  weight.block_axis = 0;
  weight.read = [x](std::uint64_t first, std::span<float> out) {
    std::copy_n(x->begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
  };
  return weight;
}

std::shared_ptr<std::vector<float>> normal(std::size_t n) {
  Random random(3);
  auto x = std::make_shared<std::vector<float>>(n);
  for (float& value : *x) value = static_cast<float>(random.normal());
  return x;
}

std::vector<std::uint8_t> codes_of(const FloatWeight& weight, const ScalePlan& plan, const CodedWeight& coded,
                                   unsigned jobs) {
  std::vector<std::uint8_t> bytes;
  write_codes(weight, plan, *coded.scales, jobs,
              [&](std::span<const std::uint8_t> part) { bytes.insert(bytes.end(), part.begin(), part.end()); });
  return bytes;
}

TEST(WeightCoder, AnyNumberOfThreadsGivesTheSameBits) {
  const FloatWeight weight = matrix(1024, 700, normal(1024 * 700));  // three blocks
  for (const std::int64_t block : {0, 64}) {
    WeightQuantizeOptions options;
    options.weight_type = DType::u4;
    options.block_size = block;
    const ScalePlan plan = plan_scales(weight, options);
    const CodedWeight one = code_weight(weight, plan, 1), three = code_weight(weight, plan, 3);
    EXPECT_EQ(one.scales->scale, three.scales->scale);
    EXPECT_EQ(one.scales->zero_point, three.scales->zero_point);
    EXPECT_EQ(one.error.noise, three.error.noise);
    EXPECT_EQ(one.worst_sqnr_db, three.worst_sqnr_db);
    EXPECT_EQ(codes_of(weight, plan, one, 1), codes_of(weight, plan, three, 3));
    EXPECT_EQ(codes_of(weight, plan, one, 1).size() + plan.n_scales() * 4 + (plan.n_scales() + 1) / 2,
              plan.size_bytes(weight.shape));
  }
}

TEST(WeightCoder, NamesAWeightThatIsNotFinite) {
  auto x = normal(1024 * 700);
  (*x)[700 * 900 + 5] = std::numeric_limits<float>::quiet_NaN();
  (*x)[700 * 1000] = std::numeric_limits<float>::infinity();
  const FloatWeight weight = matrix(1024, 700, x);
  for (const unsigned jobs : {1U, 4U}) {
    try {
      code_weight(weight, plan_scales(weight, {}), jobs);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::bad_file);
      EXPECT_THAT(error.what(), HasSubstr("tensor w: weight [900, 5] of [1024, 700] is nan"));
    }
  }
}

TEST(ScalePlan, FallsBackWithAReason) {
  FloatWeight weight = matrix(100, 8, normal(800));
  WeightQuantizeOptions options;
  options.weight_type = DType::i4;
  options.block_size = 32;
  EXPECT_EQ(plan_scales(weight, options).granularity, "per axis 1");
  EXPECT_EQ(plan_scales(weight, options).note, "100 is no multiple of 32");
  EXPECT_EQ(plan_scales(weight, options).code_type, DType::i4);
  weight.block_axis.reset();
  EXPECT_EQ(plan_scales(weight, options).code_type, DType::i8) << "convolutions keep 8 bits";
  weight.channel_axis.reset();
  weight.no_channels = "it is a single number";
  EXPECT_EQ(plan_scales(weight, options).granularity, "per tensor");
  EXPECT_EQ(plan_scales(weight, options).note, "it is a single number");
}

TEST(ScalePlan, KeepsEightBitsForAnOddNumberOfProducts) {
  WeightQuantizeOptions options;
  options.weight_type = DType::u4;
  const ScalePlan plan = plan_scales(matrix(33, 8, normal(33 * 8)), options);
  EXPECT_EQ(plan.code_type, DType::u8);
  EXPECT_EQ(plan.granularity, "per axis 1");
  EXPECT_THAT(plan.note, HasSubstr("33 is odd"));
}

TEST(WeightCoder, GroupsHaveChannelsOfTheirOwn) {
  auto x = std::make_shared<std::vector<float>>();
  for (int group = 0; group < 2; ++group) {  // [G, I, O, spatial]
    for (int i = 0; i < 3; ++i) {
      for (int o = 0; o < 4; ++o) x->insert(x->end(), 5, static_cast<float>(127 * (4 * group + o + 1)));
    }
  }
  FloatWeight weight = matrix(1, 1, x);
  weight.shape = {2, 3, 4, 5};
  weight.block_axis.reset();
  weight.channel_axis = 2;
  weight.grouped = true;
  const ScalePlan plan = plan_scales(weight, {});
  EXPECT_EQ(plan.granularity, "per axes 0 and 2");
  EXPECT_EQ(plan.scale_shape, (Shape{2, 4}));
  const CodedWeight coded = code_weight(weight, plan, 2);
  EXPECT_EQ(coded.scales->scale, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(codes_of(weight, plan, coded, 2), std::vector<std::uint8_t>(x->size(), 127));
  EXPECT_EQ(coded.error.noise, 0);
}

TEST(ScalePlan, BlocksDivideTheirAxis) {
  const FloatWeight weight = matrix(128, 8, normal(1024));
  WeightQuantizeOptions options;
  options.block_size = 32;
  const ScalePlan plan = plan_scales(weight, options);
  EXPECT_EQ(plan.granularity, "blocks of 32 along axis 0");
  EXPECT_EQ(plan.scale_shape, (Shape{4, 8}));
  EXPECT_EQ(plan.note, "");
}

TEST(WeightCoder, DeadChannelsDoNotCountAsTheWorst) {
  auto x = std::make_shared<std::vector<float>>(32, 1.0F);
  for (std::size_t row = 0; row < 16; ++row) (*x)[row * 2] = 1e-40F;
  const FloatWeight weight = matrix(16, 2, x);
  const CodedWeight coded = code_weight(weight, plan_scales(weight, {}), 1);
  EXPECT_EQ(coded.scales->negligible, (std::vector<std::uint64_t>{0}));
  EXPECT_GT(coded.worst_sqnr_db, 100);
}

}  // namespace
}  // namespace weightmill
