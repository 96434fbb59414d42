#include "slice_decoder.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include <weightmill/base/error.h>

#include "refuse_stream.h"
#include "slice.h"

namespace weightmill::mlw {
namespace {

/// Takes the chunks of one slice apart.  [docs/weight-stream.md §6]
class ChunkReader {
 public:
  ChunkReader(BitReader& in, const SliceLayout& layout, SliceSymbols& symbols)
      : in_(in), layout_(layout), symbols_(symbols), remainder_bits_(remainder_bits_of(layout)) {
    symbols_.indices.clear();
    symbols_.runs.clear();
  }

  /// False for the pass that finds nothing to start any more.
  bool take_chunk() {
    const bool zero_runs = layout_.run_code.on();
    const bool uncompressed = layout_.weight_code.is_uncompressed();
    const std::size_t n_weights = symbols_.indices.size();
    const std::size_t n_runs = symbols_.runs.size();
    const auto lead = zero_runs ? static_cast<std::int64_t>(n_weights) - static_cast<std::int64_t>(n_runs) : 0;
    const bool weights = n_weights < layout_.n_weights && lead < kMaxWeightLead;
    const bool runs = zero_runs && n_runs < layout_.n_runs && lead >= 0;
    const unsigned positions = weights && !uncompressed ? take(kChunkWeights) : 0;
    if (runs) take_run_quotients();
    if (weights && uncompressed) open_plain_indices();
    if (weights && !uncompressed) take_quotients(positions);
    take_remainders(n_weights, n_runs);
    return weights || runs;
  }

 private:
  static unsigned remainder_bits_of(const SliceLayout& layout) noexcept {
    return layout.weight_code.is_uncompressed() ? layout.index_bits : layout.weight_code.divisor();
  }

  unsigned take(unsigned width) {
    const auto field = static_cast<unsigned>(in_.take(width));
    if (in_.overrun()) refuse_stream(in_.position_bits(), "ends inside a slice");
    return field;
  }

  void take_run_quotients() {
    const unsigned width = chunk_run_bits(layout_.run_code);
    const unsigned unary = take(width);
    for (unsigned i = 0; i < width && symbols_.runs.size() < layout_.n_runs; ++i) {
      if ((unary >> i & 1) != 0) {
        ++run_quotient_;
      } else {
        symbols_.runs.push_back(run_quotient_ << layout_.run_code.divisor());
        run_quotient_ = 0;
      }
    }
  }

  void open_plain_indices() {
    const std::size_t room = layout_.n_weights - symbols_.indices.size();
    const std::size_t n = std::min<std::size_t>(room, chunk_weights(layout_.weight_code, layout_.index_bits));
    symbols_.indices.resize(symbols_.indices.size() + n);
  }

  void take_quotients(unsigned positions) {
    unsigned continuation = take(static_cast<unsigned>(std::popcount(positions)));
    for (unsigned i = 0; i < kChunkWeights && symbols_.indices.size() < layout_.n_weights; ++i) {
      bool ends = (positions >> i & 1) == 0;
      if (!ends) {
        const unsigned second = continuation & 1;
        continuation >>= 1;
        quotient_ += 1 + second;
        ends = second == 0 || layout_.weight_code.is_truncated();
      }
      if (quotient_ << layout_.weight_code.divisor() > kMaxCodeValue) refuse_index();
      if (!ends) continue;
      symbols_.indices.push_back(static_cast<std::uint16_t>(quotient_ << layout_.weight_code.divisor()));
      quotient_ = 0;
    }
  }

  /// Of the symbols before number `n_weights` and `n_runs`: those that were complete before this chunk.
  void take_remainders(std::size_t n_weights, std::size_t n_runs) {
    for (; weights_read_ < n_weights; ++weights_read_) {
      symbols_.indices[weights_read_] = static_cast<std::uint16_t>(symbols_.indices[weights_read_] | take(remainder_bits_));
    }
    for (; runs_read_ < n_runs; ++runs_read_) symbols_.runs[runs_read_] |= take(layout_.run_code.divisor());
  }

  [[noreturn]] void refuse_index() { refuse_stream(in_.position_bits(), "an index is beyond 511"); }

  BitReader& in_;
  const SliceLayout& layout_;
  SliceSymbols& symbols_;
  const unsigned remainder_bits_;
  unsigned quotient_ = 0;           ///< of the weight that is not complete yet
  std::uint64_t run_quotient_ = 0;  ///< of the run that is not complete yet
  std::size_t weights_read_ = 0;    ///< remainder and all
  std::size_t runs_read_ = 0;
};

}  // namespace

std::uint64_t take_slice_body(BitReader& in, const SliceLayout& layout, SliceSymbols& symbols) {
  ChunkReader reader(in, layout, symbols);
  std::uint64_t n_passes = 1;
  while (reader.take_chunk()) ++n_passes;
  return n_passes;
}

}  // namespace weightmill::mlw
