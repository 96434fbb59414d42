// Everything that must be refused, with the place and the reason in the message.
#include <functional>
#include <ostream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weightmill/base/error.h>

#include "squeeze.h"
#include "toy_program.h"

namespace weightmill {
namespace {

using testing::HasSubstr;
using toy::Bytes;
using toy::Commands;

/// Where things are in the toy tensor: a stream, its scales, a second stream of the same size.
const std::uint32_t kSize = static_cast<std::uint32_t>(toy::stream(256, 1, 1).size());
const std::uint32_t kScales = kSize, kSecond = kSize + 80;

Bytes tensor() { return toy::joined({toy::stream(256, 1, 1), toy::scale_records(), toy::stream(256, 1, 1)}); }

Commands conv() { return Commands().geometry().regions(0).weights(0, 0, kSize).scales(kScales, 80); }

std::vector<std::uint8_t> regor(std::span<const std::int16_t> weights) {
  return mlw::encode(weights, mlw::Effort::regor);
}

Squeezed squeeze_toy(const toy::Model& model) { return squeeze(model.programs(), {regor, false, 1, {}}); }

void expect_refused(const toy::Model& model, ErrorCode code, const std::string& place, const std::string& reason) {
  try {
    squeeze_toy(model);
    FAIL() << "accepted; wanted: " << reason;
  } catch (const Error& error) {
    EXPECT_EQ(error.code, code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(place));
    EXPECT_THAT(error.what(), HasSubstr(reason));
  }
}

/// A payload of U55-128 whose commands are refused at command word `word`.
void expect_commands_refused(const Commands& commands, std::size_t word, ErrorCode code, const std::string& reason,
                             std::uint32_t target = toy::kU55_128) {
  expect_refused({toy::cop1(target, commands), tensor()}, code, "operator 0, command word " + std::to_string(word),
                 reason);
}

/// The same, at the word of the last operation before STOP.
void expect_operation_refused(Commands commands, ErrorCode code, const std::string& reason,
                              std::uint32_t target = toy::kU55_128) {
  const std::size_t word = commands.words().size() - 1;
  expect_commands_refused(commands.stop(), word, code, reason, target);
}

TEST(Refusals, TheToyItselfIsFine) {
  const toy::Model model{toy::cop1(toy::kU55_128, conv().run(Opcode::conv).stop()), tensor()};
  EXPECT_EQ(squeeze_toy(model).summary.n_streams, 1u);
  const toy::Model other{toy::cop2(toy::kU55_128, conv().run(Opcode::conv).stop()), tensor()};
  EXPECT_EQ(squeeze_toy(other).read_only, squeeze_toy(model).read_only);
}

/// A payload word changed.
void expect_word_refused(Bytes payload, std::size_t word, std::uint32_t value, ErrorCode code, const std::string& place,
                         const std::string& reason) {
  put_word(payload, 4 * word, value);
  expect_refused({payload, tensor()}, code, place, reason);
}

TEST(Refusals, DriverPayloads) {
  const Bytes good = toy::cop1(toy::kU55_128, conv().run(Opcode::conv).stop());
  expect_word_refused(good, 0, 0x33504F43, ErrorCode::bad_file, "payload word 0", "neither COP1 nor COP2");
  expect_word_refused(good, 1, 9, ErrorCode::bad_file, "payload word 1", "driver action 9 is not known");
  expect_word_refused(good, 1, 2, ErrorCode::bad_file, "payload word 1", "before the configuration");
  expect_word_refused(good, 7, 2 | 3u << 16, ErrorCode::bad_file, "payload word 7", "3 words long by its header");
  expect_word_refused(good, 2, 0x30001807, ErrorCode::unsupported, "operator 0", "product 3");
  expect_word_refused(good, 2, 0x00001817, ErrorCode::unsupported, "operator 0", "command stream version 1");
  Bytes odd = good;
  odd.pop_back();
  expect_refused({odd, tensor()}, ErrorCode::bad_file, "operator 0", "a multiple of 4");
  Bytes shifted = good;
  shifted.erase(shifted.begin() + 16, shifted.begin() + 20);  // one filling action less
  expect_refused({shifted, tensor()}, ErrorCode::bad_file, "operator 0", "starts at byte 28");
  for (const std::size_t size : {0, 4, 8, 12, 16, 28}) {
    expect_refused({Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)), tensor()},
                   ErrorCode::bad_file, "operator 0", "");
  }
}

TEST(Refusals, SecondDriverPayloads) {
  const Bytes good = toy::cop2(toy::kU55_128, conv().run(Opcode::conv).stop());
  expect_word_refused(good, 1, 2, ErrorCode::bad_file, "payload word 1", "format version");
  expect_word_refused(good, 2, 7, ErrorCode::bad_file, "payload word 2", "counts 7 bytes");
  expect_word_refused(good, 3, 1, ErrorCode::bad_file, "payload word 2", "counts");
  expect_word_refused(good, 4, 2, ErrorCode::bad_file, "payload word 4", "entry type");
  expect_word_refused(good, 5, 2, ErrorCode::bad_file, "payload word 5", "length");
  expect_word_refused(good, 6, 1, ErrorCode::bad_file, "payload word 6", "1 bytes of metadata");
  expect_word_refused(good, 6, 0x10000, ErrorCode::bad_file, "payload word 6", "metadata");
  expect_word_refused(good, 6, 40, ErrorCode::bad_file, "operator 0", "starts at byte 68");
  expect_word_refused(good, 7, 0, ErrorCode::bad_file, "payload word 7", "tag");
  expect_word_refused(good, 8, 2, ErrorCode::bad_file, "payload word 8", "version");
  expect_word_refused(good, 9, 24, ErrorCode::bad_file, "payload word 9", "length");
}

TEST(Refusals, Encodings) {
  expect_commands_refused(Commands().word(0x00000400).stop(), 0, ErrorCode::bad_file, "reserved bits");
  expect_commands_refused(Commands().set(0x100, 1).word(0x00002100).stop(), 1, ErrorCode::bad_file, "reserved bits");
  expect_commands_refused(Commands().word(0x00008100).stop(), 0, ErrorCode::bad_file, "kind that is not known");
  expect_commands_refused(Commands().word(0x0000C020).word(0).stop(), 0, ErrorCode::bad_file, "kind that is not known");
  expect_commands_refused(Commands().address(reg::kDmaSrc, 0).word(0x4020), 2, ErrorCode::bad_file,
                          "second word is missing");
}

TEST(Refusals, OpcodesOfAnotherProduct) {
  expect_commands_refused(Commands().set(0x1FF, 0).stop(), 0, ErrorCode::unsupported, "opcode 0x1FF");
  expect_commands_refused(Commands().set(reg::kWeightFormat, 0).stop(), 0, ErrorCode::unsupported, "opcode 0x12E");
  expect_commands_refused(Commands().set(reg::kParallelMode, 1).stop(), 0, ErrorCode::unsupported, "opcode 0x123");
  expect_commands_refused(Commands().address(reg::kWeightBase[1], 0).stop(), 0, ErrorCode::unsupported, "opcode 0x090");
  expect_commands_refused(Commands().address(reg::kWeightBase[3], 0).stop(), 0, ErrorCode::unsupported, "opcode 0x094",
                          toy::kU65_512);
  expect_commands_refused(Commands().set(reg::kParallelMode, 1).stop(), 0, ErrorCode::unsupported, "opcode 0x123",
                          toy::kU85_256);
  expect_commands_refused(Commands().set(0x10D, 1).stop(), 0, ErrorCode::unsupported, "opcode 0x10D", toy::kU85_256);
  expect_commands_refused(Commands().run(Opcode::resize).stop(), 0, ErrorCode::unsupported, "opcode 0x007");
  expect_commands_refused(Commands().address(kTwoWords + 0x100, 0).stop(), 0, ErrorCode::unsupported, "branch",
                          toy::kU85_256);
}

TEST(Refusals, EndsOfTheStream) {
  expect_refused({toy::cop1(toy::kU55_128, conv().run(Opcode::conv)), tensor()}, ErrorCode::bad_file, "operator 0",
                 "truncated");
  expect_commands_refused(Commands().stop().stop(), 0, ErrorCode::bad_file, "not the last");
  expect_commands_refused(Commands().stop().run(Opcode::irq), 0, ErrorCode::bad_file, "not the last");
  expect_commands_refused(Commands().run(Opcode::stop, 1), 0, ErrorCode::bad_file, "another parameter");
}

TEST(Refusals, WeightAddresses) {
  expect_operation_refused(conv().weights(0, 8, kSize).run(Opcode::conv), ErrorCode::bad_file, "multiples of 16");
  expect_operation_refused(conv().weights(0, 0, 40).run(Opcode::conv), ErrorCode::bad_file, "multiples of 16");
  expect_operation_refused(conv().weights(0, 0x100000, kSize).run(Opcode::conv), ErrorCode::bad_file,
                           "outside the read-only tensor");
  expect_operation_refused(conv().address(reg::kWeightBase[0], 0, 1).run(Opcode::conv), ErrorCode::bad_file,
                           "outside the read-only tensor");
  expect_operation_refused(conv().address(kTwoWords + 0x021, kSize, 1).run(Opcode::conv), ErrorCode::bad_file,
                           "above its second word");
  expect_operation_refused(Commands().geometry().regions(0).address(kTwoWords + 0x021, 64).run(Opcode::conv),
                           ErrorCode::bad_file, "a length but no base");
  expect_operation_refused(Commands().geometry().weights(0, 0, kSize).run(Opcode::conv), ErrorCode::bad_file,
                           "WEIGHT_REGION");
  expect_operation_refused(conv().weights(0, 0, 0).run(Opcode::conv), ErrorCode::bad_file, "has no weight stream");
  expect_operation_refused(conv().regions(1).run(Opcode::conv), ErrorCode::unsupported, "not covered by a DMA");
}

TEST(Refusals, ScaleAddresses) {
  expect_operation_refused(conv().scales(0x100000, 80).run(Opcode::conv), ErrorCode::bad_file, "scales at");
  expect_operation_refused(conv().scales(kScales, 0x100010).run(Opcode::conv), ErrorCode::bad_file, "scales at");
  expect_operation_refused(conv().set(reg::kScaleRegion, 1).run(Opcode::conv), ErrorCode::unsupported, "scales at");
  expect_operation_refused(conv().scales(16, 80).run(Opcode::conv), ErrorCode::bad_file,
                           "reaches into a weight stream");
}

TEST(Refusals, StreamsThatDisagree) {
  expect_operation_refused(conv().run(Opcode::conv).weights(0, 0, kSize - 16).run(Opcode::conv), ErrorCode::bad_file,
                           "is used as");
  expect_operation_refused(conv().run(Opcode::conv).weights(0, 16, kSize).run(Opcode::conv), ErrorCode::bad_file,
                           "overlap");
  expect_operation_refused(conv().run(Opcode::conv).set(reg::kOfmDepthM1, 15).run(Opcode::conv), ErrorCode::bad_file,
                           "geometry");
}

TEST(Refusals, OtherReadersOfAStream) {
  const Commands used = conv().run(Opcode::conv);
  expect_operation_refused(Commands(used).set(kIfm.region, 0).address(kIfm.base, 32).run(Opcode::pool),
                           ErrorCode::bad_file, "a constant feature map at 32");
  expect_operation_refused(Commands(used).dma(0, 0x103, 0, 256), ErrorCode::bad_file, "a look-up table at 0");
  expect_operation_refused(Commands(used).dma(16, 1, 0, 256), ErrorCode::bad_file, "cuts through a weight stream");
  expect_operation_refused(Commands(used).dma(0, 1, 0, 32), ErrorCode::bad_file, "cuts through a weight stream");
  expect_operation_refused(Commands(used).dma(0, 1, 0, 0x100000), ErrorCode::bad_file, "outside the read-only tensor");
  expect_operation_refused(Commands(used).address(reg::kDmaLength, 0, 1).run(Opcode::dma_start), ErrorCode::bad_file,
                           "DMA0_LEN");
  expect_operation_refused(Commands(used).set(reg::kDmaSize0, 2).address(reg::kDmaSkip0, 8).dma(0, 1 | 1 << 9, 0, 16),
                           ErrorCode::bad_file, "a strided or indexed DMA", toy::kU65_512);
}

TEST(Refusals, FeatureMapsAndIndices) {
  expect_operation_refused(conv().set(kIfm.region, 0).address(kIfm.base, 0x100000).run(Opcode::conv),
                           ErrorCode::bad_file, "IFM at 1048576 is outside the read-only tensor");
  expect_operation_refused(Commands().regions(0).weights(0, 0, kSize).scales(kScales, 80).run(Opcode::conv),
                           ErrorCode::bad_file, "reads IFM_REGION, which was never written");
  expect_operation_refused(conv().run(Opcode::elementwise), ErrorCode::bad_file, "reads IFM2_REGION");
  expect_operation_refused(Commands().run(Opcode::dma_start), ErrorCode::bad_file, "reads DMA0_SRC_REGION");
  const Commands gather = conv().set(reg::kDmaSrcRegion, 1 | 1 << 11).set(reg::kDmaDstRegion, 2).set(reg::kDmaSize0, 1);
  expect_operation_refused(Commands(gather).run(Opcode::dma_start), ErrorCode::bad_file, "reads DMA0_IDX_REGION",
                           toy::kU85_256);
  const Commands indexed = Commands(gather).set(reg::kDmaIndexRegion, 0);
  expect_operation_refused(Commands(indexed).address(reg::kDmaIndex, 0x100000).run(Opcode::dma_start),
                           ErrorCode::bad_file, "DMA0_IDX is outside the read-only tensor", toy::kU85_256);
  expect_operation_refused(conv().run(Opcode::conv).set(reg::kDmaIndexRegion, 0).set(reg::kDmaSrcRegion, 1 | 1 << 11)
                               .set(reg::kDmaDstRegion, 2).set(reg::kDmaSize0, 1).address(reg::kDmaIndex, 0)
                               .run(Opcode::dma_start),
                           ErrorCode::bad_file, "an index list at 0", toy::kU85_256);
}

TEST(Refusals, MorePiecesThanAModelHas) {
  Commands commands = conv();
  for (std::uint32_t i = 0; i < 1100; ++i) commands.dma(kSecond, 1, 0x10000 + 32 * i, 16);
  commands.set(reg::kDmaSrcRegion, 1).set(reg::kDmaDstRegion, 2).address(reg::kDmaSrc, 0x10000);
  commands.address(reg::kDmaLength, 32 * 1100).run(Opcode::dma_start);
  expect_operation_refused(commands, ErrorCode::unsupported, "more than 1024 copied pieces");
}

/// Each range is another one, so that none is known to be the same already.
TEST(Refusals, ReadingTheSameOverAndOver) {
  constexpr std::uint32_t kLarge = 1u << 24, kTimes = 260;  // together more than 2^32 bytes
  Commands commands;
  for (std::uint32_t i = 0; i < kTimes; ++i) commands.dma(0, 1, 0, kLarge - 16 * i);
  expect_refused({toy::cop1(toy::kU55_128, commands.stop()), Bytes(kLarge, 1)}, ErrorCode::unsupported,
                 "command stream", "over and over");
}

TEST(Refusals, StreamsOfAnotherFormat) {
  const auto fast = [&](const Commands& commands) { return Commands(commands).set(reg::kWeightFormat, 1); };
  expect_operation_refused(fast(conv().run(Opcode::conv)).run(Opcode::conv), ErrorCode::bad_file, "with another format",
                           toy::kU85_256);
  const Bytes payload = toy::cop1(toy::kU85_256, fast(conv()).weights(0, 0, 32).run(Opcode::conv).stop());
  expect_refused({payload, tensor()}, ErrorCode::bad_file, "weight stream at 0", "");  // nothing behind its header
}

TEST(Refusals, WritesIntoTheTensor) {
  expect_operation_refused(conv().set(kOfm.region, 0).run(Opcode::conv), ErrorCode::unsupported, "writes its OFM");
  expect_operation_refused(Commands().dma(0, 0, 0, 16), ErrorCode::unsupported, "a DMA writes into");
  const Commands on_chip = conv().set(kOfm.region, 0).set(kOfm.precision, 2u << 14 | 1u << 8).run(Opcode::conv).stop();
  EXPECT_NO_THROW(squeeze_toy({toy::cop1(toy::kU85_256, on_chip), tensor()}));  // a chaining buffer's number, no region
}

TEST(Refusals, CopiesThatWereOverwritten) {
  const Commands staged =
      conv().dma(0, 1, 0x1000, kSize + 80).regions(1).weights(0, 0x1000, kSize).scales(0x1000 + kSize, 80);
  EXPECT_NO_THROW(squeeze_toy({toy::cop1(toy::kU55_128, Commands(staged).run(Opcode::conv).stop()), tensor()}));
  expect_operation_refused(Commands(staged).dma(kSecond, 1, 0x1010, 16 * 2).run(Opcode::conv), ErrorCode::unsupported,
                           "not covered");
  Commands written = Commands(staged).address(kOfm.base, 0x1000).run(Opcode::pool);
  expect_operation_refused(written.run(Opcode::conv), ErrorCode::unsupported, "not covered");
  Commands foreign = Commands(staged).set(reg::kDmaSrcRegion, 2).address(reg::kDmaDst, 0x1000).run(Opcode::dma_start);
  expect_operation_refused(foreign.run(Opcode::conv), ErrorCode::unsupported, "not covered");
}

TEST(Refusals, Streams) {
  const Bytes payload = toy::cop1(toy::kU55_128, conv().run(Opcode::conv).stop());
  const std::string place = "weight stream at 0 of the read-only tensor";
  Bytes damaged = tensor();
  std::fill(damaged.begin(), damaged.begin() + kSize, std::uint8_t{0});
  expect_refused({payload, damaged}, ErrorCode::bad_file, place, "");
  const auto with_stream = [&](Bytes stream) {
    stream.resize(kSize, 0xFF);
    return toy::joined({stream, toy::scale_records(), toy::stream(256, 1, 1)});
  };
  expect_refused({payload, with_stream(toy::stream(248, 1))}, ErrorCode::bad_file, place,
                 "248 weights, but the operation's geometry asks for 256");
  expect_refused({payload, with_stream(toy::joined({toy::stream(128, 0), toy::stream(128, 0)}))}, ErrorCode::bad_file,
                 place, "");
  Bytes trailing = tensor();
  trailing[kSize - 1] = 0x12;
  expect_refused({payload, trailing}, ErrorCode::bad_file, place, "");
}

TEST(Refusals, TwoStreamsInOne) {
  const Bytes both = toy::joined({mlw::encode(std::vector<std::int16_t>(128, 3), mlw::Effort::reference),
                                  mlw::encode(std::vector<std::int16_t>(128, 4), mlw::Effort::reference)});
  const auto size = static_cast<std::uint32_t>(both.size());
  const Commands commands =
      Commands().geometry().regions(0).weights(0, 0, size).scales(size, 80).run(Opcode::conv).stop();
  expect_refused({toy::cop1(toy::kU55_128, commands), toy::joined({both, toy::scale_records()})}, ErrorCode::bad_file,
                 "weight stream at 0", "another stream follows");
}

TEST(Refusals, UnknownCountsOfU85) {
  Bytes stream = toy::stream(62, 1);
  const auto size = static_cast<std::uint32_t>(stream.size());
  const Commands commands =
      Commands().geometry().regions(0).weights(0, 0, size).scales(size, 80).run(Opcode::conv).stop();
  expect_refused({toy::cop1(toy::kU85_256, commands), toy::joined({stream, toy::scale_records()})}, ErrorCode::bad_file,
                 "weight stream at 0", "a multiple of 4 and at least 64");
}

/// Decoder 1's stream moves down when decoder 0's gets shorter; where another DMA has written there, it must not.
TEST(Refusals, ShortenedCopiesInTheWayOfOthers) {
  const Bytes first = toy::stream(64, 1, 8), second = toy::stream(64, 2), other(32, 0xAB);
  const auto a = static_cast<std::uint32_t>(first.size()), b = static_cast<std::uint32_t>(second.size());
  const Bytes tensor = toy::joined({first, second, toy::scale_records(), other});
  Commands commands = Commands().geometry().set(reg::kScaleRegion, 0).scales(a + b, 80).dma(0, 1, 0x1000, a + b);
  commands.set(reg::kWeightRegion, 1).weights(0, 0x1000, a).weights(1, 0x1000 + a, b);
  EXPECT_EQ(
      squeeze_toy({toy::cop1(toy::kU85_512, Commands(commands).run(Opcode::conv).stop()), tensor}).summary.n_replaced,
      1u);
  // Decoder 0 is done; its place is used again before decoder 1's stream is read.
  commands.run(Opcode::conv).dma(a + b + 80, 1, 0x1000 + a - 128, 32).weights(0, 0, 0).run(Opcode::conv).stop();
  expect_refused({toy::cop1(toy::kU85_512, commands), tensor}, ErrorCode::unsupported, "command word", "not covered");
}

}  // namespace
}  // namespace weightmill
