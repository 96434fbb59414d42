#include "quantize_linear.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testkit/random.h"

namespace weightmill {
namespace {

using testkit::Random;

/// A per-tensor operation over `weights`, to be changed by a test.
QuantizeLinear operation(std::vector<float> weights, Shape shape, DType code = DType::i8) {
  QuantizeLinear result;
  result.shape = std::move(shape);
  result.read = [weights = std::move(weights)](std::uint64_t first, std::span<float> out) {
    std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
  };
  result.scale = {1};
  result.code_type = code;
  return result;
}

std::string reason(const QuantizeLinear& wanted) {
  const auto plan = plan_quantize_linear(wanted);
  return std::holds_alternative<Left>(plan) ? std::get<Left>(plan).reason : "";
}

std::vector<std::uint8_t> codes_of(const QuantizeLinear& wanted, std::uint64_t first, std::uint64_t count) {
  const auto plan = plan_quantize_linear(wanted);
  const auto& fold = *std::get<std::unique_ptr<ConstantFold>>(plan);
  std::vector<std::uint8_t> bytes(code_bytes(fold.code_type(), count));
  EXPECT_EQ(fold.objection(fold.codes(first, count, bytes)), "");
  return bytes;
}

/// Code of one element by the definition of ONNX, with the scale of its place looked up one by one.
std::int64_t code_by_definition(const QuantizeLinear& o, const std::vector<float>& weights, std::uint64_t index) {
  std::size_t scale = 0;
  if (o.scale.size() > 1 || o.block_size > 0) {
    const auto axis =
        static_cast<std::size_t>(o.axis < 0 ? o.axis + static_cast<std::int64_t>(o.shape.size()) : o.axis);
    std::uint64_t rest = index, stride = 1;
    for (std::size_t a = o.shape.size(); a-- > 0;) {
      std::uint64_t position = rest % static_cast<std::uint64_t>(o.shape[a]);
      rest /= static_cast<std::uint64_t>(o.shape[a]);
      if (o.block_size > 0) {
        if (a == axis) position /= static_cast<std::uint64_t>(o.block_size);
        scale += position * stride;
        stride *= static_cast<std::uint64_t>(o.scale_shape[a]);
      } else if (a == axis) {
        scale = position;
      }
    }
  }
  const unsigned bits = size_bits(o.code_type);
  const bool is_signed =
      o.code_type == DType::i2 || o.code_type == DType::i4 || o.code_type == DType::i8 || o.code_type == DType::i16;
  const std::int64_t low = is_signed ? -(std::int64_t{1} << (bits - 1)) : 0;
  const double code = std::nearbyint(static_cast<double>(weights[index] / o.scale[scale])) + o.zero_point[scale];
  return static_cast<std::int64_t>(
      std::clamp(code, static_cast<double>(low), static_cast<double>(low + (1 << bits) - 1)));
}

QuantizeLinear random_operation(Random& random, std::vector<float>& weights) {
  constexpr DType kCodes[] = {DType::i2, DType::u2, DType::i4, DType::u4, DType::i8, DType::u8, DType::i16, DType::u16};
  Shape shape;
  for (auto rank = random.integer(1, 4); rank > 0; --rank) shape.push_back(random.integer(1, rank == 1 ? 40 : 9));
  weights.clear();
  for (std::uint64_t n = n_elements(shape, "test"); n > 0; --n)
    weights.push_back(static_cast<float>(random.normal() * 30));
  QuantizeLinear result = operation(weights, shape, kCodes[random.integer(0, 7)]);
  const auto rank = static_cast<std::int64_t>(shape.size());
  result.axis = random.integer(-rank, rank - 1);
  const auto axis = static_cast<std::size_t>(result.axis < 0 ? result.axis + rank : result.axis);
  const auto kind = random.integer(0, 2);
  if (kind == 1) result.scale_shape = {shape[axis]};
  if (kind == 2) {
    result.block_size = random.integer(1, 6);
    result.scale_shape = shape;
    result.scale_shape[axis] = (shape[axis] + result.block_size - 1) / result.block_size;
  }
  result.scale.clear();
  const std::int64_t top = size_bits(result.code_type) == 16 ? 100 : 1;
  for (std::uint64_t n = n_elements(result.scale_shape, "test"); n > 0; --n) {
    result.scale.push_back(static_cast<float>(std::exp(random.normal())));
    result.zero_point.push_back(static_cast<std::int32_t>(random.integer(0, top)));
  }
  result.zero_point_shape = result.scale_shape;
  return result;
}

TEST(QuantizeLinear, EqualsTheDefinitionForEveryLayoutAndAnyCut) {
  for (const std::uint64_t seed : testkit::seeds(2000)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<float> weights;
    const QuantizeLinear o = random_operation(random, weights);
    const unsigned bits = size_bits(o.code_type);
    const std::uint64_t per_byte = bits < 8 ? 8 / bits : 1;
    const auto first =
        static_cast<std::uint64_t>(random.integer(0, static_cast<std::int64_t>((weights.size() - 1) / per_byte))) *
        per_byte;
    const std::vector<std::uint8_t> bytes = codes_of(o, first, weights.size() - first);
    for (std::uint64_t i = 0; i < weights.size() - first; ++i) {
      std::uint64_t code = 0;
      if (bits == 16)
        code = static_cast<std::uint64_t>(bytes[2 * i] | bytes[2 * i + 1] << 8);
      else
        code = (bytes[i / per_byte] >> (i % per_byte * bits)) & ((1u << bits) - 1);
      const auto want = static_cast<std::uint64_t>(code_by_definition(o, weights, first + i)) & ((1u << bits) - 1);
      ASSERT_EQ(code, want) << "element " << first + i;
    }
  }
}

TEST(QuantizeLinear, PadsOddCountsWithZeros) {
  EXPECT_THAT(codes_of(operation({-1, -1, -1}, {3}, DType::i4), 0, 3), testing::ElementsAre(0xff, 0x0f));
  EXPECT_THAT(codes_of(operation({-1}, {1}, DType::i2), 0, 1), testing::ElementsAre(0x03));
}

TEST(QuantizeLinear, ObjectsToNaN) {
  const auto plan = plan_quantize_linear(operation({1, std::nanf(""), 2}, {3}));
  const auto& fold = *std::get<std::unique_ptr<ConstantFold>>(plan);
  std::vector<std::uint8_t> codes(3);
  EXPECT_EQ(fold.objection(fold.codes(0, 3, codes)), "a weight is NaN");
}

TEST(QuantizeLinear, StaysWithinItsBoundForAnyFiniteScale) {
  for (const float scale : {1e-40f, -0.1f, 3e38f, std::numeric_limits<float>::min()}) {
    QuantizeLinear o = operation({1, -1e-41f, 3e38f, -2, 0}, {5}, DType::i16);
    o.scale = {scale};
    const auto plan = plan_quantize_linear(o);
    const auto& fold = *std::get<std::unique_ptr<ConstantFold>>(plan);
    std::vector<std::uint8_t> codes(10);
    EXPECT_EQ(fold.objection(fold.codes(0, 5, codes)), "") << scale;
  }
}

TEST(QuantizeLinear, LeavesWhatHasNoMeaning) {
  const QuantizeLinear good = operation({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto changed = [&](const auto& change) {
    QuantizeLinear o = good;
    change(o);
    return reason(o);
  };
  EXPECT_EQ(reason(good), "");
  EXPECT_THAT(changed([](auto& o) { o.type = DType::f64; }), testing::HasSubstr("float64"));
  EXPECT_THAT(changed([](auto& o) { o.scale_type = DType::f16; }), testing::HasSubstr("scale float16"));
  EXPECT_THAT(changed([](auto& o) { o.scale = {0}; }), testing::HasSubstr("scale 0 is 0"));
  EXPECT_THAT(changed([](auto& o) { o.scale = {-INFINITY}; }), testing::HasSubstr("scale 0 is -inf"));
  EXPECT_THAT(changed([](auto& o) { o.block_size = -1; }), testing::HasSubstr("negative"));
  EXPECT_THAT(changed([](auto& o) { o.zero_point = {0, 0}; }), testing::HasSubstr("zero point"));
  const auto per_axis = [](auto& o) { o.scale_shape = {2}, o.scale = {1, 1}; };
  EXPECT_THAT(changed(per_axis), testing::HasSubstr("axis 1 of [2, 3] needs [3]"));
  EXPECT_EQ(changed([&](auto& o) { per_axis(o), o.axis = 0; }), "");
  EXPECT_EQ(changed([&](auto& o) { per_axis(o), o.axis = -2; }), "");
  EXPECT_THAT(changed([&](auto& o) { per_axis(o), o.axis = 2; }), testing::HasSubstr("axis 2"));
  EXPECT_THAT(changed([&](auto& o) { per_axis(o), o.axis = -3; }), testing::HasSubstr("axis -3"));
  EXPECT_THAT(changed([](auto& o) { o.block_size = 2; }), testing::HasSubstr("need [2, 2]"));
  EXPECT_THAT(changed([](auto& o) { o.division = DType::f16; }), testing::HasSubstr("division in float16"));
}

TEST(QuantizeLinear, LeavesZeroPointsInAnotherOrderThanTheScales) {
  QuantizeLinear o = operation({1, 2, 3, 4, 5, 6}, {3, 2});
  o.axis = 0;
  o.block_size = 2;
  o.scale_shape = {2, 2};
  o.scale = {1, 1, 1, 1};
  o.zero_point = {1, 2, 3, 4};
  o.zero_point_shape = {2, 2};
  EXPECT_EQ(reason(o), "");
  o.zero_point_shape = {4, 1};
  EXPECT_THAT(reason(o), testing::HasSubstr("zero point has shape [4, 1]"));
  o = operation({1, 2}, {2});
  o.zero_point = {1};
  o.zero_point_shape = {1};
  EXPECT_EQ(reason(o), "");
}

TEST(QuantizeLinear, RoundsQuotientsToTheTypeOfTheDivision) {
  // 2.5005 is 2.5 in float16, a tie, and 100.6 is 100.5 in bfloat16.
  QuantizeLinear o = operation({2.5005f, 100.6f, 1e9f, -1e9f}, {4});
  const auto codes = [&](DType type) {
    o.type = o.scale_type = o.division = type;
    return codes_of(o, 0, 4);
  };
  EXPECT_THAT(codes(DType::f32), testing::ElementsAre(3, 101, 127, 128));
  EXPECT_THAT(codes(DType::f16), testing::ElementsAre(2, 101, 127, 128));
  o.scale_shape = {4};
  o.axis = 0;
  o.scale = {1, 1, 1, 1};
  EXPECT_THAT(codes(DType::f16), testing::ElementsAre(2, 101, 127, 128));
  EXPECT_THAT(codes(DType::bf16), testing::ElementsAre(2, 100, 127, 128));
}

}  // namespace
}  // namespace weightmill
