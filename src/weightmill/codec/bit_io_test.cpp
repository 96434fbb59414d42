#include "bit_reader.h"
#include "bit_writer.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <testkit/random.h>

namespace weightmill::mlw {
namespace {

TEST(BitWriter, PutsTheFirstBitLowest) {
  BitWriter out;
  out.put(1, 1);
  out.put(0b10, 2);
  out.put(0x1ff, 9);
  EXPECT_EQ(out.size_bits(), 12u);
  EXPECT_EQ(std::move(out).take(), (std::vector<std::uint8_t>{0b11111101, 0b1111}));
}

TEST(BitWriter, AndReaderAgreeOnFieldsOfAnyWidth) {
  for (const std::uint64_t seed : testkit::seeds(100)) {
    SCOPED_TRACE(seed);
    testkit::Random random(seed);
    std::vector<std::pair<std::uint64_t, unsigned>> fields(static_cast<std::size_t>(random.integer(0, 400)));
    BitWriter out;
    BitCounter counter;
    for (auto& [value, width] : fields) {
      width = static_cast<unsigned>(random.integer(0, BitWriter::kMaxFieldBits));
      value = random.bits() & ((std::uint64_t{1} << width) - 1);
      out.put(value, width);
      counter.put(value, width);
    }
    const std::uint64_t n_ones = static_cast<std::uint64_t>(random.integer(0, 300));
    out.put_ones(n_ones);
    counter.put_ones(n_ones);
    EXPECT_EQ(out.size_bits(), counter.size_bits());

    const auto bytes = std::move(out).take();
    BitReader in(bytes);
    for (const auto& [value, width] : fields) EXPECT_EQ(in.take(width), value);
    for (std::uint64_t i = 0; i < n_ones; ++i) EXPECT_EQ(in.take(1), 1u);
    EXPECT_FALSE(in.overrun());
  }
}

TEST(BitReader, ReadsZerosBehindTheEndAndSaysSo) {
  const std::vector<std::uint8_t> bytes{0xff, 0xff};
  BitReader in(bytes);
  EXPECT_EQ(in.take(9), 0x1ffu);
  in.skip_to_byte();
  EXPECT_TRUE(in.at_end());
  EXPECT_FALSE(in.overrun());
  EXPECT_EQ(in.take(56), 0u);
  EXPECT_TRUE(in.overrun());
  EXPECT_FALSE(in.at_end());
}

TEST(BitReader, ReadsNothingFromNothing) {
  BitReader in({});
  EXPECT_TRUE(in.at_end());
  EXPECT_EQ(in.peek(), 0u);
}

}  // namespace
}  // namespace weightmill::mlw
