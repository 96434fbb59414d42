#include "cost.h"

#include <algorithm>

#include <weightmill/base/bits.h>

namespace weightmill::mlw {
namespace {

std::uint64_t header_bits(const Slice& slice) noexcept {
  BitCounter counter;
  put_slice_header(counter, slice);
  return counter.size_bits();
}

std::uint64_t weights_bits(const Slice& slice) noexcept {
  const WeightCode code = slice.weight_code;
  const std::uint64_t n = slice.indices.size();
  if (code.is_uncompressed()) return n * slice.palette.index_bits();
  std::uint64_t positions = 0, continuations = 0;
  for (const std::uint16_t index : slice.indices) {
    const unsigned quotient = unsigned{index} >> code.divisor();
    positions += code.is_truncated() ? 1 : quotient / 2 + 1;
    continuations += code.is_truncated() ? std::min(quotient, 1u) : (quotient + 1) / 2;
  }
  return ceil_to<std::uint64_t>(positions, kChunkWeights) + continuations + n * code.divisor();
}

std::uint64_t runs_bits(const Slice& slice) noexcept {
  if (!slice.run_code.on()) return 0;
  std::uint64_t unary = 0;
  for (const std::uint32_t run : slice.runs) unary += (run >> slice.run_code.divisor()) + 1;
  return ceil_to<std::uint64_t>(unary, chunk_run_bits(slice.run_code)) + slice.runs.size() * slice.run_code.divisor();
}

}  // namespace

std::uint64_t slice_bits(const Slice& slice) noexcept {
  return header_bits(slice) + weights_bits(slice) + runs_bits(slice);
}

}  // namespace weightmill::mlw
