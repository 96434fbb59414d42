#include "stream_coding.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/codec/codec.h>

namespace weightmill {
namespace {

constexpr std::size_t kGranule = 16;          // bytes; streams are a multiple of it
constexpr std::size_t kFastHeaderBytes = 32;  // of the fast format

std::string where_of_stream(const Analysis& analysis, const Stream& stream) {
  return fmt::format("{}, weight stream at {} of the read-only tensor",
                     where_of(analysis.programs[stream.program], stream.word), stream.offset);
}

/// All the places for weights that a fast stream has; the last ones may be filling.
std::size_t fast_slots(std::span<const std::uint8_t> bytes) {
  if (bytes.size() <= kFastHeaderBytes) return 0;
  const bool is_raw = (bytes[0] & 1) != 0, has_small_table = (bytes[0] & 2) != 0;
  const std::size_t bits = is_raw ? 8 : has_small_table ? 2 : 4;
  return (bytes.size() - kFastHeaderBytes) * 8 / bits;
}

mlw::Decoded decode_mlw(const Analysis& analysis, const Stream& stream) {
  const std::size_t limit = stream.count.is_exact ? stream.count.least : mlw::kDefaultMaxWeights;
  mlw::Decoded decoded = mlw::decode_with_statistics(analysis.bytes_of(stream), limit);
  if (decoded.statistics.streams > 1) {
    fail(ErrorCode::bad_stream, "stream", "another stream follows its end code, where only filling may stand");
  }
  return decoded;
}

DecodedStream decode_any(const Analysis& analysis, const Stream& stream) {
  const auto bytes = analysis.bytes_of(stream);
  if (stream.is_fast) return {mlw::decode_fast(bytes, fast_slots(bytes)), 0};
  mlw::Decoded decoded = decode_mlw(analysis, stream);
  return {std::move(decoded.weights), decoded.statistics.passes};
}

bool decodes(std::span<const std::uint8_t> stream) {
  try {
    mlw::decode(stream);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

DecodedStream decode_stream(const Analysis& analysis, const Stream& stream) {
  DecodedStream decoded;
  try {
    decoded = decode_any(analysis, stream);
  } catch (const Error& error) {
    if (error.code != ErrorCode::bad_stream) throw;
    fail(ErrorCode::bad_file, where_of_stream(analysis, stream), error.what());
  }
  const std::uint64_t count = decoded.weights.size();
  if (stream.is_fast ? count < stream.count.least : !stream.count.allows(count)) {
    fail(ErrorCode::bad_file, where_of_stream(analysis, stream),
         fmt::format("it holds {} weights, but the operation's geometry asks for {}{}", count,
                     stream.count.is_exact ? "" : "a multiple of 4 and at least ", stream.count.least));
  }
  return decoded;
}

bool same_weights(const Analysis& before, const Stream& a, const Analysis& after, const Stream& b) {
  const auto bytes_a = before.bytes_of(a), bytes_b = after.bytes_of(b);
  const DecodedStream decoded_a = decode_stream(before, a);
  if (std::equal(bytes_a.begin(), bytes_a.end(), bytes_b.begin(), bytes_b.end())) return true;
  const DecodedStream decoded_b = decode_stream(after, b);
  if (!a.is_fast) return decoded_a.weights == decoded_b.weights;
  const std::size_t n = std::min(decoded_a.weights.size(), decoded_b.weights.size());  // beyond may be filling
  return std::equal(decoded_a.weights.begin(), decoded_a.weights.begin() + static_cast<std::ptrdiff_t>(n),
                    decoded_b.weights.begin());
}

std::span<const std::uint8_t> without_filling(std::span<const std::uint8_t> stream) {
  const auto is_filling = [&](std::size_t end) {
    const auto granule = stream.subspan(end - kGranule, kGranule);
    return std::all_of(granule.begin(), granule.end(), [](std::uint8_t byte) { return byte == 0xFF; });
  };
  std::size_t end = stream.size();
  while (end > kGranule && is_filling(end)) end -= kGranule;
  // A granule of ones can also be the stream's own, or hold its end code: then one more is needed.
  for (std::size_t tried = end; tried < std::min(stream.size(), end + 2 * kGranule); tried += kGranule) {
    if (decodes(stream.first(tried))) return stream.first(tried);
  }
  return stream;
}

}  // namespace weightmill
