#include "slice.h"

#include <cassert>
#include <numeric>

#include <weightmill/base/bits.h>
#include <weightmill/kernels/bit_appender.h>
#include <weightmill/kernels/bit_planes.h>

namespace weightmill::mlw {
namespace {

constexpr std::uint64_t ones(unsigned width) noexcept { return (std::uint64_t{1} << width) - 1; }

/// Bytes for `n_bits` that a kernel writes and a dealer reads a chunk beyond.
constexpr std::size_t room_bytes(std::size_t n_bits) noexcept { return n_bits / 8 + 2 * kBitSlack; }

void append_run(BitAppender& out, std::uint64_t quotient) noexcept {
  constexpr unsigned kStep = 56;
  for (; quotient >= kStep; quotient -= kStep) out.append(ones(kStep), kStep);
  out.append(ones(static_cast<unsigned>(quotient)), static_cast<unsigned>(quotient) + 1);
}

}  // namespace

void SlicePlanes::fill(const Slice& slice) {
  assert(!slice.indices.empty() && slice.indices.size() <= kMaxSliceWeights);
  const WeightCode code = slice.weight_code;
  remainder_bits = code.is_uncompressed() ? slice.palette.index_bits() : code.divisor();
  run_remainder_bits = slice.run_code.on() ? slice.run_code.divisor() : 0;
  body_bits = 0;
  fill_weights(slice);
  if (slice.run_code.on()) fill_runs(slice);
}

void SlicePlanes::fill_weights(const Slice& slice) {
  const std::size_t n = slice.indices.size();
  write_low_bits(slice.indices, remainder_bits, remainder.room_for(room_bytes(n * remainder_bits)));
  body_bits += n * remainder_bits;
  if (slice.weight_code.is_uncompressed()) return;
  const std::size_t n_bytes = quotient_plane_bytes(n) + kBitSlack;
  const QuotientPlanes planes{position.room_for(n_bytes), last_position.room_for(n_bytes),
                              continuation.room_for(n_bytes)};
  const QuotientBits bits = write_quotients(slice.indices, remainder_bits, slice.weight_code.is_truncated(), planes);
  body_bits += ceil_to<std::uint64_t>(bits.n_positions, kChunkWeights) + bits.n_continuations;
}

void SlicePlanes::fill_runs(const Slice& slice) {
  const auto add_quotient = [&](std::size_t total, std::uint32_t run) {
    return total + (run >> run_remainder_bits) + 1;
  };
  const std::size_t n_unary_bits = std::accumulate(slice.runs.begin(), slice.runs.end(), std::size_t{0}, add_quotient);
  BitAppender unary(run_unary.room_for(room_bytes(n_unary_bits)));
  BitAppender remainders(run_remainder.room_for(room_bytes(slice.runs.size() * run_remainder_bits)));
  for (const std::uint32_t run : slice.runs) {
    append_run(unary, run >> run_remainder_bits);
    remainders.append(run & ones(run_remainder_bits), run_remainder_bits);
  }
  unary.flush();
  remainders.flush();
  body_bits += ceil_to<std::uint64_t>(n_unary_bits, chunk_run_bits(slice.run_code)) + remainders.size_bits();
}

}  // namespace weightmill::mlw
