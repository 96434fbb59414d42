#include "scale_bias.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include <testkit/golden.h>
#include <testkit/random.h>
#include <weightmill/base/bits.h>
#include <weightmill/base/error.h>
#include "accelerator.h"

namespace weightmill {
namespace {

using testkit::GoldenSet;
using testkit::to_double;

std::string hex_of(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

TEST(ScaleBias, RecordsEqualVelas) {
  const auto set = GoldenSet::open("ethosu/bias_vectors");
  if (!set) GTEST_SKIP() << "ethosu/bias_vectors not installed: set WEIGHTMILL_GOLDEN_DIR";
  for (const auto& c : set->cases()) {
    SCOPED_TRACE(c.dump());
    const ChannelRecord record{c.at("bias"), {c.at("scale"), c.at("shift")}};
    if (c.contains("error")) {
      EXPECT_THROW(pack_record(record, RecordFormat::bias40_scale32), Error);
      continue;
    }
    const RecordBytes bytes = pack_record(record, RecordFormat::bias40_scale32);
    EXPECT_EQ(hex_of(bytes), c.at("hex").get<std::string>());
    EXPECT_EQ(unpack_record(bytes, RecordFormat::bias40_scale32), record);
  }
}

std::vector<float> floats_of(const nlohmann::json& list) {
  std::vector<float> values;
  for (const auto& item : list) values.push_back(static_cast<float>(to_double(item)));
  return values;
}

PackedRecords records_of_case(const nlohmann::json& c) {
  const std::map<std::string, DType> dtypes{{"uint8", DType::u8}, {"int8", DType::i8}, {"int16", DType::i16}};
  const std::vector<float> weight_scale = floats_of(c.at("weight_scales"));
  ScaleRequest request;
  request.rule = ScalingRule::v2020;
  request.ifm_dtype = dtypes.at(c.at("ifm_dtype"));
  request.ifm_scale = static_cast<float>(to_double(c.at("ifm_scale")));
  request.ofm_scale = static_cast<float>(to_double(c.at("ofm_scale")));
  request.weight_scale = weight_scale;
  request.rescale_for_activation = c.at("rescale_for_faf");
  const auto biases = c.at("biases").get<std::vector<std::int64_t>>();
  const auto scales = channel_scales(request, biases.size());
  std::vector<ChannelRecord> channels;
  for (std::size_t k = 0; k < biases.size(); ++k) channels.push_back({biases[k], scales[k]});
  return pack_records(channels, c.at("ofm_depth_step"), c.at("ncores"));
}

TEST(ScaleBias, FollowsTheClassicFlow) {
  const auto set = GoldenSet::open("ethosu/v2020_bias");
  if (!set) GTEST_SKIP() << "ethosu/v2020_bias not installed: set WEIGHTMILL_GOLDEN_DIR";
  for (const auto& c : set->cases()) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const PackedRecords records = records_of_case(c);
    ASSERT_EQ(records.slices.size(), c.at("compressed_values").size());
    for (std::size_t s = 0; s < records.slices.size(); ++s) {
      std::string slice;
      std::vector<std::uint64_t> offsets{0};
      for (const PackedScales& core : records.slices[s]) {
        slice += hex_of(std::span(records.bytes).subspan(core.offset, core.size_bytes));
        offsets.push_back(offsets.back() + core.size_bytes);
      }
      EXPECT_EQ(slice, c.at("compressed_values")[s].get<std::string>());
      EXPECT_EQ(offsets, c.at("substream_offsets")[s].get<std::vector<std::uint64_t>>());
    }
  }
}

constexpr std::array kFormats{RecordFormat::bias40_scale32, RecordFormat::bias32_scale31, RecordFormat::bias48_scale15};
constexpr std::array<int, 3> kBiasBits{40, 32, 48};
constexpr std::array<int, 3> kScaleBits{32, 31, 15};

TEST(ScaleBias, RecordsComeBackInEveryFormat) {
  testkit::Random random(3);
  for (int i = 0; i < 3000; ++i) {
    const std::size_t f = static_cast<std::size_t>(i) % 3;
    const std::int64_t bias_limit = std::int64_t{1} << (kBiasBits[f] - 1);
    const ChannelRecord record{
        random.integer(-bias_limit, bias_limit - 1),
        {random.integer(0, (std::int64_t{1} << kScaleBits[f]) - 1), static_cast<int>(random.integer(0, 63))}};
    EXPECT_EQ(unpack_record(pack_record(record, kFormats[f]), kFormats[f]), record);
  }
}

TEST(ScaleBias, RefusesValuesThatDoNotFitTheirField) {
  for (std::size_t f = 0; f < kFormats.size(); ++f) {
    const std::int64_t bias_limit = std::int64_t{1} << (kBiasBits[f] - 1),
                       scale_limit = std::int64_t{1} << kScaleBits[f];
    EXPECT_NO_THROW(pack_record({-bias_limit, {scale_limit - 1, 63}}, kFormats[f]));
    EXPECT_THROW(pack_record({bias_limit, {1, 1}}, kFormats[f]), Error);
    EXPECT_THROW(pack_record({-bias_limit - 1, {1, 1}}, kFormats[f]), Error);
    EXPECT_THROW(pack_record({0, {scale_limit, 1}}, kFormats[f]), Error);
    EXPECT_THROW(pack_record({0, {-1, 1}}, kFormats[f]), Error);
    EXPECT_THROW(pack_record({0, {1, 64}}, kFormats[f]), Error);
    EXPECT_THROW(pack_record({0, {1, -1}}, kFormats[f]), Error);
  }
}

TEST(ScaleBias, RefusesRecordsWithForeignBits) {
  for (const RecordFormat format : kFormats) {
    RecordBytes bytes{};
    bytes[9] = 0x40;
    EXPECT_THROW(unpack_record(bytes, format), Error);
  }
  RecordBytes bytes{};
  bytes[8] = 0x80;  // the shift's upper bits on U85
  EXPECT_THROW(unpack_record(bytes, RecordFormat::bias32_scale31), Error);
}

TEST(ScaleBias, RulesDifferWhereTheyShould) {
  ScaleRequest r;
  const std::vector<float> weight{0.00392f};
  r.ifm_scale = 0.0471f;
  r.ofm_scale = 0.0313f;
  r.weight_scale = weight;
  const auto factor = [&](ScalingRule rule, DType dtype, bool fc) {
    r.rule = rule, r.ifm_dtype = dtype, r.fully_connected = fc;
    return rescale_factors(r).front();
  };
  const double float_product = static_cast<double>(r.ifm_scale * weight[0]) / static_cast<double>(r.ofm_scale);
  const double double_product =
      static_cast<double>(r.ifm_scale) * static_cast<double>(weight[0]) / static_cast<double>(r.ofm_scale);
  ASSERT_NE(float_product, double_product);
  EXPECT_EQ(factor(ScalingRule::v2020, DType::i8, true), double_product);
  EXPECT_EQ(factor(ScalingRule::vela5, DType::i8, true), float_product);
  EXPECT_EQ(factor(ScalingRule::vela5, DType::i8, false), double_product);
  EXPECT_EQ(factor(ScalingRule::v2020, DType::u8, false), float_product);
  EXPECT_EQ(factor(ScalingRule::regor, DType::u8, false), float_product);
}

TEST(ScaleBias, SixteenBitFeatureMapsGetReducedScales) {
  ScaleRequest r;
  const std::vector<float> weight{0.25f};
  r.weight_scale = weight;
  r.ifm_dtype = DType::i16;
  const auto scale = [&](ScalingRule rule, bool bias_64) {
    r.rule = rule, r.bias_is_64_bit = bias_64;
    return channel_scales(r, 1).front();
  };
  const FixedPoint full{1 << 30, 32}, reduced{1 << 14, 16};
  EXPECT_EQ(scale(ScalingRule::v2020, false), reduced);
  EXPECT_EQ(scale(ScalingRule::vela5, false), full);
  EXPECT_EQ(scale(ScalingRule::vela5, true), reduced);
  EXPECT_EQ(scale(ScalingRule::regor, true), reduced);
}

TEST(ScaleBias, RefusesFeatureMapsAndCountsThatNoRuleCovers) {
  ScaleRequest r;
  const std::vector<float> weight{1, 2, 3};
  r.weight_scale = weight;
  EXPECT_THROW(channel_scales(r, 4), Error);
  r.ifm_dtype = DType::f32;
  EXPECT_THROW(channel_scales(r, 3), Error);
  EXPECT_THROW(pack_records({}, 0, 1), Error);
  EXPECT_THROW(pack_records({}, 1, 0), Error);
  EXPECT_THROW(pack_records_u85({}, 0, 16, RecordFormat::bias32_scale31), Error);
  const std::vector<ChannelRecord> channels{{std::int64_t{1} << 40, {1, 1}}};
  EXPECT_THROW(pack_records(channels, 1, 1), Error);
}

TEST(ScaleBias, U85RecordsOfASliceAreFilledUpToWholeUblocks) {
  const std::vector<ChannelRecord> channels(40, {7, {1 << 30, 31}});
  for (const auto& [ublock_depth, unit] : {std::pair{8, 16u}, {16, 16u}, {32, 32u}, {64, 64u}}) {
    const PackedRecords records = pack_records_u85(channels, 24, ublock_depth, RecordFormat::bias32_scale31);
    ASSERT_EQ(records.slices.size(), 2u);
    std::uint64_t offset = 0;
    for (std::size_t s = 0; s < 2; ++s) {
      const PackedScales& at = records.slices[s].front();
      const unsigned n = s == 0 ? 24 : 16;
      EXPECT_EQ(at.offset, offset);
      EXPECT_EQ(at.n_records, static_cast<int>(n));
      EXPECT_EQ(at.n_records + at.n_zero_records, static_cast<int>(ceil_to(n, unit)));
      EXPECT_EQ(at.size_bytes, ceil_to(10 * ceil_to(n, unit), 16u));
      const auto tail = std::span(records.bytes).subspan(at.offset + 10 * n, at.size_bytes - 10 * n);
      EXPECT_TRUE(std::ranges::all_of(tail, [](std::uint8_t b) { return b == 0; }));
      offset += at.size_bytes;
    }
    EXPECT_EQ(offset, records.bytes.size());
  }
}

}  // namespace
}  // namespace weightmill
