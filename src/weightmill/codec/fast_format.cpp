#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include <weightmill/base/bits.h>
#include <weightmill/base/error.h>

#include "bit_reader.h"
#include "bit_writer.h"
#include "check_weights.h"
#include "code_value.h"
#include "codec.h"

namespace weightmill::mlw {
namespace {

constexpr std::uint64_t kAlignmentBits = 256;  // of the header, and of the whole stream
constexpr unsigned kReservedBits = 102;
constexpr std::size_t kTableSize = 16;
constexpr std::size_t kSmallTableSize = 4;
constexpr unsigned kTableEntryBits = 9;

/// The first 16 distinct weights, in the order of their first appearance.
struct Table {
  std::array<std::int16_t, kTableSize> weights{};
  std::size_t size = 0;
  bool complete = true;  ///< there are no more

  std::size_t find(std::int16_t weight) const noexcept {
    return static_cast<std::size_t>(std::find(weights.begin(), weights.begin() + size, weight) - weights.begin());
  }
};

Table make_table(std::span<const std::int16_t> weights) {
  Table table;
  std::array<bool, 2 * kMaxWeight + 1> seen{};
  for (const std::int16_t weight : weights) {
    if (std::exchange(seen[static_cast<std::size_t>(weight + kMaxWeight)], true)) continue;
    if (table.size == kTableSize) {
      table.complete = false;
      break;
    }
    table.weights[table.size++] = weight;
  }
  return table;
}

struct Header {
  bool raw = false;    ///< 8 bits a weight
  bool small = false;  ///< 2 bits a weight
  int zero_adjust = 0; ///< what is added to a raw weight to make it fit
};

/// What moves the weights into [-128, 127]; nothing where none does.
std::optional<int> zero_adjust_for(std::span<const std::int16_t> weights) noexcept {
  if (weights.empty()) return 0;
  const auto [min, max] = std::minmax_element(weights.begin(), weights.end());
  if (*max - *min > std::numeric_limits<std::uint8_t>::max()) return std::nullopt;
  if (*min < std::numeric_limits<std::int8_t>::min()) return std::numeric_limits<std::int8_t>::min() - *min;
  if (*max > std::numeric_limits<std::int8_t>::max()) return std::numeric_limits<std::int8_t>::max() - *max;
  return 0;
}

std::optional<Header> choose_header(std::span<const std::int16_t> weights, const Table& table, bool force_raw) {
  if (!force_raw && table.complete) return Header{.small = table.size <= kSmallTableSize};
  const std::optional<int> zero_adjust = zero_adjust_for(weights);
  if (!zero_adjust || (force_raw && *zero_adjust != 0)) return std::nullopt;
  return Header{.raw = true, .zero_adjust = *zero_adjust};
}

void put_header(BitWriter& out, const Header& header, const Table& table) {
  out.put(header.raw ? 1 : 0, 1);
  out.put(header.small ? 1 : 0, 1);
  out.put(0, kReservedBits - BitWriter::kMaxFieldBits);
  out.put(0, BitWriter::kMaxFieldBits);
  out.put(static_cast<std::uint8_t>(header.zero_adjust), 8);
  for (const std::int16_t weight : table.weights) out.put(fold(weight), kTableEntryBits);
}

void pad_with_zeros(BitWriter& out) {
  while (out.size_bits() % 8 != 0) out.put(0, 1);
  while (out.size_bits() % kAlignmentBits != 0) out.put(0, 8);
}

[[noreturn]] void refuse(std::string_view why) { fail(ErrorCode::bad_stream, "fast weight stream", why); }

void check_size(std::span<const std::uint8_t> stream, std::size_t n_weights, unsigned weight_bits) {
  const std::size_t room = (stream.size() - kAlignmentBits / 8) * 8 / weight_bits;
  if (n_weights > room) {
    refuse(fmt::format("{} bytes hold {} weights of {} bits, wanted {}", stream.size(), room, weight_bits, n_weights));
  }
}

std::array<std::int16_t, kTableSize> take_table(BitReader& in) {
  std::array<std::int16_t, kTableSize> table;
  for (std::int16_t& weight : table) weight = unfold(static_cast<unsigned>(in.take(kTableEntryBits)));
  return table;
}

}  // namespace

std::optional<std::vector<std::uint8_t>> encode_fast(std::span<const std::int16_t> weights, bool force_raw) {
  check_weights(weights);
  const Table table = make_table(weights);
  const std::optional<Header> header = choose_header(weights, table, force_raw);
  if (!header) return std::nullopt;
  BitWriter out;
  put_header(out, *header, table);
  for (const std::int16_t weight : weights) {
    if (header->raw) {
      out.put(static_cast<std::uint8_t>(weight + header->zero_adjust), 8);
    } else {
      out.put(table.find(weight), header->small ? 2 : 4);
    }
  }
  pad_with_zeros(out);
  return std::move(out).take();
}

std::vector<std::int16_t> decode_fast(std::span<const std::uint8_t> stream, std::size_t n_weights) {
  if (stream.size() < kAlignmentBits / 8) {
    refuse(fmt::format("is {} bytes long, its header alone takes 32", stream.size()));
  }
  BitReader in(stream);
  const bool raw = in.take(1) != 0;
  const bool small = in.take(1) != 0;
  if (raw && small) refuse("says that it is raw and that it has a small table");
  in.skip(kReservedBits);
  const int zero_adjust = static_cast<std::int8_t>(in.take(8));
  const auto table = take_table(in);
  const unsigned weight_bits = raw ? 8 : small ? 2 : 4;
  check_size(stream, n_weights, weight_bits);
  std::vector<std::int16_t> weights(n_weights);
  for (std::int16_t& weight : weights) {
    const auto code = in.take(weight_bits);
    weight = raw ? static_cast<std::int16_t>(static_cast<std::int8_t>(code) - zero_adjust) : table[code];
  }
  return weights;
}

}  // namespace weightmill::mlw
