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

/// Of the quotients of all indices. 32 bits hold them, and the loops take many indices at a time.
struct Quotients {
  std::uint32_t positions = 0, continuations = 0;
};

/// Adds up part(index) of all indices. Within a block 16 bits hold the sum, so that it takes eight indices at a time.
template <class Part>
std::uint32_t sum_of(std::span<const std::uint16_t> indices, const Part& part) noexcept {
  constexpr std::size_t kBlock = 64;
  std::uint32_t sum = 0;
  for (std::size_t begin = 0; begin < indices.size(); begin += kBlock) {
    const auto block = indices.subspan(begin, std::min(kBlock, indices.size() - begin));
    std::uint16_t block_sum = 0;
    for (const std::uint16_t index : block) block_sum = static_cast<std::uint16_t>(block_sum + part(index));
    sum += block_sum;
  }
  return sum;
}

/// With a divisor that the compiler knows 16 bits are enough for each step.
template <unsigned kDivisor>
Quotients plain_quotients(std::span<const std::uint16_t> indices) noexcept {
  const auto n = static_cast<std::uint32_t>(indices.size());
  const auto halves = [](std::uint16_t index) { return static_cast<std::uint16_t>(index >> (kDivisor + 1)); };
  const auto rounded_up = [](std::uint16_t index) {
    return static_cast<std::uint16_t>((index + (1u << kDivisor)) >> (kDivisor + 1));
  };
  return {n + sum_of(indices, halves), sum_of(indices, rounded_up)};
}

Quotients plain_quotients(std::span<const std::uint16_t> indices, unsigned divisor) noexcept {
  switch (divisor) {
    case 0:
      return plain_quotients<0>(indices);
    case 1:
      return plain_quotients<1>(indices);
    case 2:
      return plain_quotients<2>(indices);
    case 3:
      return plain_quotients<3>(indices);
    case 4:
      return plain_quotients<4>(indices);
    default:
      return plain_quotients<5>(indices);
  }
}

Quotients truncated_quotients(std::span<const std::uint16_t> indices, unsigned divisor) noexcept {
  const unsigned least = 1u << divisor;
  const auto is_above = [=](std::uint16_t index) { return static_cast<std::uint16_t>(index >= least ? 1 : 0); };
  return {static_cast<std::uint32_t>(indices.size()), sum_of(indices, is_above)};
}

Quotients quotients_of(const Slice& slice) noexcept {
  const WeightCode code = slice.weight_code;
  if (code.is_uncompressed()) return {static_cast<std::uint32_t>(slice.indices.size()), 0};
  return code.is_truncated() ? truncated_quotients(slice.indices, code.divisor())
                             : plain_quotients(slice.indices, code.divisor());
}

std::uint64_t weights_bits(const Slice& slice, const Quotients& quotients) noexcept {
  const WeightCode code = slice.weight_code;
  const std::uint64_t n = slice.indices.size();
  if (code.is_uncompressed()) return n * slice.palette.index_bits();
  return ceil_to<std::uint64_t>(quotients.positions, kChunkWeights) + quotients.continuations + n * code.divisor();
}

std::uint64_t runs_bits(const Slice& slice) noexcept {
  if (!slice.run_code.on()) return 0;
  std::uint64_t unary = 0;
  for (const std::uint32_t run : slice.runs) unary += (run >> slice.run_code.divisor()) + 1;
  return ceil_to<std::uint64_t>(unary, chunk_run_bits(slice.run_code)) + slice.runs.size() * slice.run_code.divisor();
}

/// Symbols of several places each, taken as far as a chunk has room.
template <class Places>
class Taker {
 public:
  Taker(std::size_t n, unsigned room, Places places) : n_(n), room_(room), places_(places) { next(); }

  bool more() const noexcept { return done_ < static_cast<std::int64_t>(n_); }
  std::int64_t done() const noexcept { return done_; }

  void take_chunk() noexcept {
    std::uint64_t room = room_;
    for (; more() && left_ <= room; ++done_, next()) room -= left_;
    left_ -= more() ? room : 0;
  }

 private:
  void next() noexcept { left_ = more() ? places_(static_cast<std::size_t>(done_)) : 0; }

  std::size_t n_;
  unsigned room_;
  Places places_;
  std::int64_t done_ = 0;
  std::uint64_t left_ = 0;  ///< places of the symbol at hand that are not taken yet
};

/// Symbols of one place each.
class OnePlaceTaker {
 public:
  OnePlaceTaker(std::size_t n, unsigned room) : n_(static_cast<std::int64_t>(n)), room_(room) {}

  bool more() const noexcept { return done_ < n_; }
  std::int64_t done() const noexcept { return done_; }
  void take_chunk() noexcept { done_ += std::min(room_, n_ - done_); }

 private:
  std::int64_t n_, room_;
  std::int64_t done_ = 0;
};

/// Goes through the chunks as a decoder does: the one of the two kinds that is behind holds the other up.
template <class Weights, class Runs>
std::uint64_t count_passes(Weights weights, Runs runs) noexcept {
  for (std::uint64_t n_passes = 1;; ++n_passes) {
    const std::int64_t lead = weights.done() - runs.done();
    const bool take_weights = weights.more() && lead < kMaxWeightLead, take_runs = runs.more() && lead >= 0;
    if (!take_weights && !take_runs) return n_passes;
    if (take_weights) weights.take_chunk();
    if (take_runs) runs.take_chunk();
  }
}

std::uint64_t passes_with_runs(const Slice& slice) noexcept {
  const WeightCode code = slice.weight_code;
  const unsigned room = chunk_weights(code, slice.palette.index_bits());
  const Taker runs(slice.runs.size(), chunk_run_bits(slice.run_code),
                   [&](std::size_t i) { return (std::uint64_t{slice.runs[i]} >> slice.run_code.divisor()) + 1; });
  if (code.is_uncompressed() || code.is_truncated()) {
    return count_passes(OnePlaceTaker(slice.indices.size(), room), runs);
  }
  const auto places = [&](std::size_t i) { return (std::uint64_t{slice.indices[i]} >> code.divisor()) / 2 + 1; };
  return count_passes(Taker(slice.indices.size(), room, places), runs);
}

std::uint64_t passes_of(const Slice& slice, const Quotients& quotients) noexcept {
  if (slice.run_code.on()) return passes_with_runs(slice);
  return ceil_div<std::uint64_t>(quotients.positions, chunk_weights(slice.weight_code, slice.palette.index_bits())) + 1;
}

}  // namespace

Cost slice_cost(const Slice& slice) noexcept {
  const Quotients quotients = quotients_of(slice);
  return {header_bits(slice) + weights_bits(slice, quotients) + runs_bits(slice), passes_of(slice, quotients)};
}

}  // namespace weightmill::mlw
