#include "slice.h"

#include <cassert>

namespace weightmill::mlw {
namespace {

constexpr std::uint64_t ones(unsigned width) noexcept { return (std::uint64_t{1} << width) - 1; }

}  // namespace

void SlicePlanes::fill(const Slice& slice) {
  assert(!slice.indices.empty() && slice.indices.size() <= kMaxSliceWeights);
  for (BitWriter* plane : {&position, &last_position, &continuation, &remainder, &run_unary, &run_remainder}) plane->clear();
  const WeightCode code = slice.weight_code;
  remainder_bits = code.is_uncompressed() ? slice.palette.index_bits() : code.divisor();
  run_remainder_bits = slice.run_code.on() ? slice.run_code.divisor() : 0;
  fill_weights(slice);
  if (slice.run_code.on()) fill_runs(slice);
}

void SlicePlanes::fill_weights(const Slice& slice) {
  const std::uint64_t mask = ones(remainder_bits);
  for (const std::uint16_t index : slice.indices) remainder.put(index & mask, remainder_bits);
  if (slice.weight_code.is_uncompressed()) return;
  const bool truncated = slice.weight_code.is_truncated();
  for (const std::uint16_t index : slice.indices) {
    assert(slice.weight_code.can_code(index));
    const unsigned quotient = unsigned{index} >> remainder_bits;
    const unsigned twos = quotient / 2;  // positions that add 2
    const unsigned odd = quotient % 2;
    const unsigned before_last = truncated && twos != 0 ? 0 : twos;  // a truncated quotient takes one position
    position.put(ones(before_last) | std::uint64_t{truncated ? twos | odd : odd} << before_last, before_last + 1);
    last_position.put(std::uint64_t{1} << before_last, before_last + 1);
    continuation.put(ones(twos), twos + odd);
  }
}

void SlicePlanes::fill_runs(const Slice& slice) {
  const std::uint64_t mask = ones(run_remainder_bits);
  for (const std::uint32_t run : slice.runs) {
    run_unary.put_ones(run >> run_remainder_bits);
    run_unary.put(0, 1);
    run_remainder.put(run & mask, run_remainder_bits);
  }
}

}  // namespace weightmill::mlw
