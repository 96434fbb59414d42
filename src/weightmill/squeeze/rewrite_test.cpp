#include "rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compare.h"
#include "squeeze.h"
#include "stream_coding.h"
#include "toy_program.h"
#include "trace.h"

namespace weightmill {
namespace {

using testing::HasSubstr;
using toy::Bytes;
using toy::Commands;

std::vector<std::uint8_t> regor(std::span<const std::int16_t> weights) {
  return mlw::encode(weights, mlw::Effort::regor);
}

Bytes padded(Bytes bytes, std::size_t size) {
  bytes.resize(size, 0xFF);
  return bytes;
}

TEST(LayoutMap, MovesWhatIsBehindAGap) {
  LayoutMap map;
  map.take_out(32, 16);
  map.take_out(64, 0);
  map.take_out(80, 32);
  EXPECT_EQ(map(0), 0u);
  EXPECT_EQ(map(32), 32u);
  EXPECT_EQ(map(40), 32u);  // taken out: where the next byte is
  EXPECT_EQ(map(48), 32u);
  EXPECT_EQ(map(80), 64u);
  EXPECT_EQ(map(112), 64u);
  EXPECT_EQ(map(200), 152u);
}

/// Two convolutions that share their LENGTH write, because their streams are as long as each other.
struct Twins {
  static constexpr std::uint32_t kSize = 256;
  toy::Model model;
  Twins() {
    const Bytes first = padded(toy::stream(256, 1), kSize), second = padded(toy::stream(256, 2), kSize);
    model.read_only = toy::joined({first, second, toy::scale_records()});
    Commands commands = Commands().geometry().regions(0).weights(0, 0, kSize).scales(2 * kSize, 80).run(Opcode::conv);
    commands.address(reg::kWeightBase[0], kSize)
        .run(Opcode::conv)
        .address(reg::kWeightBase[0], 0)
        .run(Opcode::conv)
        .stop();
    model.payload = toy::cop1(toy::kU55_128, commands);
  }
};

TEST(Rewrite, InsertsAWriteWhereOneServedTwo) {
  const Twins twins;
  const NpuPrograms programs = twins.model.programs();
  const Analysis analysis = analyze(programs);
  const Bytes first = padded(toy::stream(256, 1), 192), second = padded(toy::stream(256, 2), 224);
  const Rewritten equal = rewrite(analysis, {padded(first, 224), second}, {});
  EXPECT_EQ(equal.n_insertions, 0u);
  const Rewritten unequal = rewrite(analysis, {first, second}, {});
  EXPECT_EQ(unequal.n_insertions, 2u);  // before the second and the third
  EXPECT_EQ(unequal.payloads[0].size(), twins.model.payload.size() + 16);
  EXPECT_EQ(unequal.read_only.size(), twins.model.read_only.size() - 64 - 32);
  const toy::Model after{unequal.payloads[0], unequal.read_only};
  EXPECT_EQ(compare_programs(programs, after.programs()), std::nullopt);
}

TEST(Rewrite, WithoutAChangeGivesTheSameBytes) {
  const Twins twins;
  const NpuPrograms programs = twins.model.programs();
  const Rewritten same = rewrite(analyze(programs), Replacements(2), {});
  EXPECT_EQ(same.payloads[0], twins.model.payload);
  EXPECT_EQ(same.read_only, twins.model.read_only);
}

TEST(Rewrite, KeepsLengthsOfBothDriverHeaders) {
  const Bytes stream = padded(toy::stream(256, 1), 512);
  Commands commands = Commands().geometry().regions(0).weights(0, 0, 512).scales(512, 80).run(Opcode::conv);
  commands.weights(0, 592, 512).run(Opcode::conv).address(reg::kWeightBase[0], 0).run(Opcode::conv).stop();
  for (const Bytes& payload : {toy::cop1(toy::kU55_128, commands), toy::cop2(toy::kU55_128, commands)}) {
    const toy::Model model{payload, toy::joined({stream, toy::scale_records(), padded(toy::stream(256, 2), 512)})};
    const NpuPrograms programs = model.programs();
    const Rewritten longer = rewrite(analyze(programs), {padded(toy::stream(256, 1), 480), std::nullopt}, {});
    EXPECT_EQ(longer.payloads[0].size(), payload.size() + 8);
    EXPECT_NO_THROW(parse_payload(longer.payloads[0], "payload"));
  }
}

/// Scales in front, two streams behind: with a DMA, decoder 1's base moves inside the copy.
TEST(Rewrite, MovesBasesInsideACopy) {
  const Bytes first = padded(toy::stream(64, 1), 128), second = padded(toy::stream(64, 2), 128),
              records = toy::scale_records();
  Commands commands = Commands().geometry().dma(16, 2, 0x400, 80 + 256).regions(2).scales(0x400, 80);
  commands.weights(0, 0x450, 128).weights(1, 0x4D0, 128).run(Opcode::conv).stop();
  const toy::Model model{toy::cop1(toy::kU85_512, commands),
                         toy::joined({Bytes(16), records, first, second, Bytes(16), Bytes{1}})};
  const Squeezed squeezed = squeeze(model.programs(), {regor, false, 1, {}});
  EXPECT_EQ(squeezed.summary.n_replaced, 2u);
  EXPECT_EQ(squeezed.summary.dead_bytes, 32u);
  const toy::Model after{squeezed.payloads[0], squeezed.read_only};
  const NpuPrograms programs = after.programs();
  const Analysis analysis = analyze(programs);
  ASSERT_EQ(analysis.streams.size(), 2u);
  EXPECT_EQ(analysis.streams[0].offset, 80u);
  EXPECT_EQ(analysis.streams[1].offset, analysis.streams[0].end());
  EXPECT_EQ(decode_stream(analysis, analysis.streams[1]).weights, toy::weights(64, 2));
}

TEST(Rewrite, FollowsConstantsTablesAndUnreadScales) {
  const Bytes stream = padded(toy::stream(256, 1), 256), constant(32, 7), table(256, 9);
  Commands commands = Commands().geometry().regions(0).weights(0, 0, 256).scales(256, 80).run(Opcode::conv);
  commands.dma(368, 0x103, 0, 256).set(kOfm.precision, 0).set(kIfm.region, 0).address(kIfm.base, 336);
  commands.run(Opcode::pool).stop();  // reads the scales, perhaps
  const toy::Model model{toy::cop1(toy::kU55_128, commands),
                         toy::joined({stream, toy::scale_records(), constant, table})};
  const Squeezed squeezed = squeeze(model.programs(), {regor, false, 1, {}});
  EXPECT_LT(squeezed.read_only.size(), model.read_only.size());
  const toy::Model after{squeezed.payloads[0], squeezed.read_only};
  EXPECT_EQ(compare_programs(model.programs(), after.programs()), std::nullopt);
}

/// Core 1's scales move down with the stream before them, to where an OFM was written meanwhile. ELEMENTWISE does not
/// mind.
TEST(Rewrite, LeavesScalesBehindThatNothingReads) {
  const Bytes first = padded(toy::stream(256, 1), 256), second = padded(toy::stream(256, 2), 256);
  Commands commands = Commands().set(reg::kParallelMode, 1).geometry();
  commands.set(reg::kOfmDepthM1, 15).set(reg::kOfmBlockDepthM1, 15);
  commands.dma(0, 2, 0x400, 80 + 256 + 80 + 16 + 256).regions(2).scales(0x400, 80).weights(0, 0x450, 256);
  commands.address(reg::kScaleBase[1], 0x550).address(static_cast<RegisterId>(reg::kScaleBase[1] + 1), 80);
  commands.weights(1, 0x5B0, 256).run(Opcode::conv);
  commands.set(kOfm.region, 2).set(kOfm.precision, 0).address(kOfm.base, 0x4D0).set(kOfm.height0_m1, 13);
  commands.run(Opcode::elementwise, 7).run(Opcode::elementwise, 7).stop();
  const toy::Model model{toy::cop1(toy::kU65_512, commands),
                         toy::joined({toy::scale_records(), first, toy::scale_records(), Bytes(16, 1), second})};
  const Squeezed squeezed = squeeze(model.programs(), {regor, false, 1, {}});
  EXPECT_EQ(squeezed.summary.n_replaced, 2u);
  const toy::Model after{squeezed.payloads[0], squeezed.read_only};
  EXPECT_EQ(compare_programs(model.programs(), after.programs()), std::nullopt);
}

/// The self-check sees each kind of change.
TEST(Trace, SeesEveryDifference) {
  const Bytes stream = padded(toy::stream(256, 1), 256);
  const auto commands = [](std::uint32_t zero_point, std::uint32_t ifm, std::uint32_t activation) {
    Commands c = Commands().geometry().set(0x109, zero_point).address(kIfm.base, ifm).regions(0).weights(0, 0, 256);
    return c.scales(256, 80).run(Opcode::conv).dma(336, 0x103, 0, 256).set(0x125, activation).run(Opcode::irq).stop();
  };
  const Bytes tensor = toy::joined({stream, toy::scale_records(), Bytes(256, 3)});
  const toy::Model model{toy::cop1(toy::kU55_128, commands(1, 0x8000, 0)), tensor};
  const auto difference = [&](const toy::Model& other) {
    return compare_programs(model.programs(), other.programs()).value_or("");
  };
  const auto changed = [&](std::size_t at) {
    Bytes bytes = tensor;
    bytes[at] ^= 1;
    return toy::Model{model.payload, bytes};
  };
  EXPECT_EQ(difference(model), "");
  EXPECT_THAT(difference({toy::cop1(toy::kU55_128, commands(2, 0x8000, 0)), tensor}), HasSubstr("register 0x109"));
  EXPECT_THAT(difference({toy::cop1(toy::kU55_128, commands(1, 0x8010, 0)), tensor}), HasSubstr("feature map"));
  EXPECT_THAT(difference({toy::cop1(toy::kU55_128, commands(1, 0x8000, 1)), tensor}), HasSubstr("register 0x125"));
  EXPECT_THAT(difference(changed(256)), HasSubstr("scales"));
  EXPECT_THAT(difference(changed(400)), HasSubstr("DMA source"));
  const toy::Model other_weights{model.payload,
                                 toy::joined({padded(toy::stream(256, 2), 256), toy::scale_records(), Bytes(256, 3)})};
  EXPECT_THAT(difference(other_weights), HasSubstr("weights"));
  EXPECT_THAT(difference({toy::cop1(0x00001006, commands(1, 0x8000, 0)), tensor}), HasSubstr("configuration"));
}

TEST(Squeeze, KeepsDeadBytesOnRequestAndNeverEmptiesATensor) {
  const Commands idle = Commands().run(Opcode::irq).stop();
  const toy::Model model{toy::cop1(toy::kU55_128, idle), Bytes(64)};
  EXPECT_EQ(squeeze(model.programs(), {regor, false, 1, {}}).read_only.size(), 64u);
  const toy::Model other{model.payload, toy::joined({Bytes(64), Bytes{1}})};
  EXPECT_EQ(squeeze(other.programs(), {regor, false, 1, {}}).read_only, Bytes{1});
  EXPECT_EQ(squeeze(other.programs(), {regor, true, 1, {}}).read_only, other.read_only);
}

TEST(Squeeze, LeavesFastStreamsValid) {
  std::vector<std::int16_t> weights = toy::weights(64, 1);
  for (auto& weight : weights) weight = static_cast<std::int16_t>(weight % 4);
  const Bytes raw = *mlw::encode_fast(weights, /*force_raw=*/true);
  const auto size = static_cast<std::uint32_t>(raw.size());
  Commands commands = Commands().geometry().regions(0).set(reg::kWeightFormat, 1).weights(0, 0, size).scales(size, 80);
  const toy::Model model{toy::cop1(toy::kU85_256, commands.run(Opcode::conv).stop()),
                         toy::joined({raw, toy::scale_records()})};
  const Squeezed squeezed = squeeze(model.programs(), {regor, false, 1, {}});
  EXPECT_EQ(squeezed.summary.n_replaced, 1u);
  const toy::Model after{squeezed.payloads[0], squeezed.read_only};
  EXPECT_LT(after.read_only.size(), model.read_only.size());
  EXPECT_EQ(compare_programs(model.programs(), after.programs()), std::nullopt);
}

TEST(Filling, IsTrimmedAsFarAsTheStreamAllows) {
  for (int seed = 0; seed < 40; ++seed) {
    const Bytes tight = toy::stream(static_cast<std::size_t>(20 + 7 * seed), seed),
                loose = padded(tight, tight.size() + 48);
    const auto trimmed = without_filling(loose);
    EXPECT_LE(trimmed.size(), tight.size());
    EXPECT_EQ(mlw::decode(trimmed), mlw::decode(tight));
  }
}

}  // namespace
}  // namespace weightmill
