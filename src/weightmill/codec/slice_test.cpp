#include "slice.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <testkit/random.h>

#include "cost.h"

namespace weightmill::mlw {
namespace {

/// The bits from `begin` on, in the order of the stream.
std::string bits_of(BitWriter&& out, std::uint64_t begin) {
  const std::uint64_t n_bits = out.size_bits();
  const auto bytes = std::move(out).take();
  std::string bits;
  for (std::uint64_t i = begin; i < n_bits; ++i) bits += (bytes[i / 8] >> i % 8 & 1) != 0 ? '1' : '0';
  return bits;
}

/// A slice with its symbols, drawn so that its code can code them.
struct RandomSlice {
  explicit RandomSlice(testkit::Random& random)
      : weight_code(static_cast<unsigned>(random.integer(0, 12))),
        run_code(static_cast<unsigned>(random.integer(0, 4))),
        sends_palette(random.chance(0.5)) {
    palette.size = static_cast<unsigned>(random.chance(0.5) ? 0 : random.integer(2, 32));
    palette.entry_bits = static_cast<unsigned>(random.integer(2, 9));
    const unsigned n_indices = weight_code.is_uncompressed() ? 1u << palette.index_bits() : 512;
    while (indices.size() < static_cast<std::size_t>(random.integer(1, 200))) {
      const auto index = static_cast<unsigned>(random.integer(0, n_indices - 1)) >> random.integer(0, 9);
      if (weight_code.can_code(index)) indices.push_back(static_cast<std::uint16_t>(index));
    }
    const std::size_t n_runs = run_code.on() ? indices.size() + (sends_palette ? 1 : 0) : 0;
    while (runs.size() < n_runs) {
      const std::int64_t longest = random.chance(0.02) ? 5000 : random.chance(0.5) ? 1 : 40;
      runs.push_back(static_cast<std::uint32_t>(random.integer(0, longest)));
    }
  }

  Slice slice() const { return {indices, runs, weight_code, run_code, palette, sends_palette}; }

  WeightCode weight_code;
  RunCode run_code;
  bool sends_palette;
  Palette palette;
  std::vector<std::uint16_t> indices;
  std::vector<std::uint32_t> runs;
};

TEST(Slice, IsWrittenAsInTheExampleOfTheDocument) {
  const std::vector<std::uint16_t> indices{5, 2};
  const Palette palette{.entry_bits = 9};
  BitWriter out;
  SlicePlanes planes;
  put_slice(out, {indices, {}, WeightCode::plain(1), RunCode::off(), palette, true}, planes);
  const unsigned header = 3 + 15 + 3 + 1 + 1 + 13;
  EXPECT_EQ(bits_of(std::move(out), header), "101000000000" "10" "1" "0");
}

TEST(Slice, CostsWhatItTakes) {
  SlicePlanes planes;
  for (const std::uint64_t seed : testkit::seeds(1000)) {
    SCOPED_TRACE(seed);
    testkit::Random random(seed);
    const RandomSlice drawn(random);
    BitWriter out;
    BitCounter counter;
    const std::uint64_t n_passes = put_slice(out, drawn.slice(), planes);
    put_slice(counter, drawn.slice(), planes);
    EXPECT_EQ(counter.size_bits(), out.size_bits());
    const Cost cost = slice_cost(drawn.slice());
    EXPECT_EQ(cost.bits, out.size_bits());
    EXPECT_EQ(cost.passes, n_passes);

    BitCounter header;
    put_slice_header(header, drawn.slice());
    EXPECT_EQ(planes.body_bits, out.size_bits() - header.size_bits());
  }
}

TEST(Slice, EndFillsWholeWords) {
  for (unsigned n_before = 0; n_before < 300; ++n_before) {
    BitWriter out;
    for (unsigned i = 0; i < n_before; ++i) out.put(0, 1);
    put_end_of_stream(out);
    EXPECT_EQ(out.size_bits() % 128, 0u);
    EXPECT_LT(out.size_bits() - n_before, 128u + 3);
    const std::uint64_t n_bits = out.size_bits();
    EXPECT_EQ(bits_of(std::move(out), n_before), std::string(n_bits - n_before, '1'));
  }
}

}  // namespace
}  // namespace weightmill::mlw
