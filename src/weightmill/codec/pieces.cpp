#include "pieces.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <limits>

#include <weightmill/base/bits.h>

#include "code_value.h"

namespace weightmill::mlw {
namespace {

/// Lanes of the search: Golomb-Rice codes, and indices as they are in 2 to 9 bits; with zero runs, the codes and
/// indices of one width, each with the 4 codes of the runs.
constexpr unsigned kRiceCodes = WeightCode::kUncompressed;
constexpr unsigned kMinWidth = 2;
constexpr unsigned kDenseLanes = kRiceCodes + 8;
constexpr unsigned kRunLanes = (kRiceCodes + 1) * RunCode::kCount;
constexpr unsigned kLanes = kDenseLanes + kRunLanes;

/// Zero runs are looked at in blocks of which one weight in so many is 0.
constexpr std::uint32_t kZerosWorthIt = 16;

using Lead = std::int32_t;  ///< a Price over the cheapest lane's
constexpr Lead kFarBehind = Lead{1} << 28;

Lead capped(Price price) noexcept { return static_cast<Lead>(std::min<Price>(price, kFarBehind)); }

/// How the lanes of one kind were entered at a block.
struct Entry {
  Lead price = kFarBehind;
  std::uint8_t from = 0;  ///< lane
};

/// What leads back from a block to the one before.
struct Step {
  std::size_t begin;
  Entry dense, runs;
  std::array<std::uint8_t, kLanes> entered;  ///< 1: from another lane
};

bool is_dense(unsigned lane) noexcept { return lane < kDenseLanes; }

class PieceSearch {
 public:
  PieceSearch(std::span<const std::int16_t> weights, const BestSettings& settings)
      : weights_(weights), settings_(settings) {
    steps_.reserve(weights.size() / settings.block_weights + 16);
  }

  std::vector<Piece> run() && {
    std::size_t done = 0;
    while (done < weights_.size()) {
      const ZeroRun zeros = next_zero_run(done);
      for (; done < zeros.begin; done = std::min(done + settings_.block_weights, zeros.begin)) {
        take_block(done, std::min(done + settings_.block_weights, zeros.begin));
      }
      if (zeros.begin != zeros.end) take_zeros(zeros);
      done = zeros.end;
    }
    return trace();
  }

 private:
  struct ZeroRun {
    std::size_t begin, end;
  };

  /// The next long run of zeros from weight `from` on; empty, at the end, if there is none.
  ZeroRun next_zero_run(std::size_t from) const noexcept {
    constexpr std::size_t kAtOnce = 8;  // a long run holds so many at a multiple of so many
    static_assert(kAtOnce * 2 <= 16);
    const std::size_t n = weights_.size();
    for (std::size_t i = ceil_to(from, kAtOnce); i + kAtOnce <= n;) {
      if (!are_zero<kAtOnce>(weights_.data() + i)) {
        i += kAtOnce;
        continue;
      }
      std::size_t begin = i, end = i + kAtOnce;
      while (begin > from && weights_[begin - 1] == 0) --begin;
      while (end < n && weights_[end] == 0) ++end;
      if (end - begin >= settings_.min_zero_run) return {begin, end};
      i = ceil_to(end, kAtOnce);
    }
    return {n, n};
  }

  template <std::size_t kCount>
  static bool are_zero(const std::int16_t* weights) noexcept {
    std::array<std::uint64_t, kCount / 4> words;
    std::memcpy(words.data(), weights, sizeof words);
    std::uint64_t any = 0;
    for (const std::uint64_t word : words) any |= word;
    return any == 0;
  }

  /// Without zeros in the block, zero runs are only worth a look where they come from the block before.
  bool runs_may_go_on() const noexcept {
    const Lead best = *std::min_element(lead_.begin() + kDenseLanes, lead_.end());
    return best < capped(settings_.slice_price() + BestSettings::kPaletteHeaderBits * kBit);
  }

  bool all_forms() const noexcept { return settings_.forms == Forms::all; }

  /// A zero that is coded is index 1, or with a direct offset of 1 index 0.
  void take_block(std::size_t begin, std::size_t end) {
    const auto block = weights_.subspan(begin, end - begin);
    IndexSums dense = index_sums(block, all_forms() ? 1 : 0);
    if (!all_forms() && dense.n_zero != 0) {
      dense.quotients[0] += dense.n_zero;
      dense.above[0] += dense.n_zero;
      dense.largest = std::max<std::uint16_t>(dense.largest, 1);
    }
    price_dense(dense);
    const bool with_runs = dense.n_zero * kZerosWorthIt >= dense.n || runs_may_go_on();
    if (with_runs) {
      price_runs(block);
    } else {
      open_run_ = 0;
    }
    step(begin, with_runs);
  }

  void take_zeros(const ZeroRun& zeros) {
    const auto n = static_cast<std::uint32_t>(zeros.end - zeros.begin);
    IndexSums dense;
    dense.n = n;
    if (!all_forms()) dense.quotients[0] = dense.above[0] = dense.largest = 1, dense.quotients[0] = dense.above[0] = n;
    price_dense(dense);
    std::array<Price, RunCode::kCount> runs;
    for (unsigned d = 0; d < RunCode::kCount; ++d) runs[d] = run_growth(0, n, d);
    open_run_ = n;
    spread_runs(IndexSums{}, runs);
    step(zeros.begin, true);
  }

  void price_dense(const IndexSums& sums) {
    for (unsigned number = 0; number < kRiceCodes; ++number) {
      price_[number] = capped(indices_price(sums, WeightCode(number), settings_.position));
    }
    for (unsigned lane = kRiceCodes; lane < kDenseLanes; ++lane) {
      const unsigned width = lane - kRiceCodes + kMinWidth;
      const bool fits = sums.largest >> width == 0;
      price_[lane] = fits ? capped(uncompressed_price(sums.n, width, settings_.position)) : kFarBehind;
    }
  }

  void price_runs(std::span<const std::int16_t> block) {
    IndexSums sums = index_sums(block, 2);
    sums.n -= sums.n_zero;
    std::array<Price, RunCode::kCount> runs{};
    std::uint32_t run = open_run_, known = open_run_;
    const auto grow = [&] {
      for (unsigned d = 0; d < RunCode::kCount; ++d) runs[d] += run_growth(known, run, d);
    };
    for (const std::int16_t weight : block) {
      if (weight == 0) {
        ++run;
      } else if (run != 0) {
        grow();
        run = known = 0;
      }
    }
    grow();
    open_run_ = run;
    spread_runs(sums, runs);
  }

  /// What more a run costs that grows from `from` to `to` zeros.
  Price run_growth(std::uint32_t from, std::uint32_t to, unsigned divisor) const noexcept {
    return (kBit + settings_.run_bit()) * ((to >> divisor) - (from >> divisor));
  }

  /// The prices of all lanes with zero runs: of the indices, a run's end behind each, and the runs.
  void spread_runs(const IndexSums& sums, std::array<Price, RunCode::kCount> runs) {
    for (unsigned d = 0; d < RunCode::kCount; ++d) runs[d] += (kBit * (1 + d) + settings_.run_bit()) * sums.n;
    const unsigned width = std::max(kMinWidth, index_bits(sums.largest + 1u));
    for (unsigned number = 0; number <= kRiceCodes; ++number) {
      const Price indices = number < kRiceCodes ? indices_price(sums, WeightCode(number), settings_.beside_runs())
                                                : uncompressed_price(sums.n, width, settings_.beside_runs());
      for (unsigned d = 0; d < RunCode::kCount; ++d) {
        price_[kDenseLanes + number * RunCode::kCount + d] = capped(indices + runs[d]);
      }
    }
  }

  Entry cheapest(unsigned begin, unsigned end) const noexcept {
    const auto best = std::min_element(lead_.begin() + begin, lead_.begin() + end);
    return {*best, static_cast<std::uint8_t>(best - lead_.begin())};
  }

  static Entry cheaper(Entry a, Price a_price, Entry b, Price b_price) noexcept {
    const Lead via_a = capped(a.price + a_price), via_b = capped(b.price + b_price);
    return via_b < via_a ? Entry{via_b, b.from} : Entry{via_a, a.from};
  }

  /// Takes the block that begins at `begin`, whose prices are known: each lane stays or is entered from the cheapest.
  void step(std::size_t begin, bool with_runs) {
    Step& step = steps_.emplace_back();
    step.begin = begin;
    if (steps_.size() > 1) {
      const Price header = settings_.slice_price();
      const Price palette = header + BestSettings::kPaletteHeaderBits * kBit;
      const Price first_run = (BestSettings::kFillerBits + 1) * kBit;
      const Entry dense = cheapest(0, kDenseLanes), runs = cheapest(kDenseLanes, kLanes);
      step.dense = cheaper(dense, header, runs, palette);
      step.runs = cheaper(runs, header, dense, palette + first_run);
    }
    take_lanes(0, kDenseLanes, step.dense.price, step.entered);
    if (with_runs) {
      take_lanes(kDenseLanes, kLanes, step.runs.price, step.entered);
    } else {
      std::fill(lead_.begin() + kDenseLanes, lead_.end(), kFarBehind);
    }
    const Lead lowest = *std::min_element(lead_.begin(), lead_.end());
    for (Lead& lead : lead_) lead -= lowest;
  }

  void take_lanes(unsigned begin, unsigned end, Lead entry, std::array<std::uint8_t, kLanes>& entered) {
    for (unsigned lane = begin; lane < end; ++lane) {
      const bool enter = entry < lead_[lane];
      entered[lane] = enter ? 1 : 0;
      lead_[lane] = std::min((enter ? entry : lead_[lane]) + price_[lane], kFarBehind);
    }
  }

  std::vector<Piece> trace() const {
    std::vector<Piece> pieces;
    unsigned lane = cheapest(0, kLanes).from;
    std::size_t end = weights_.size();
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      if (step->entered[lane] == 0 && step + 1 != steps_.rend()) continue;
      pieces.push_back({step->begin, end, !is_dense(lane)});
      end = step->begin;
      lane = is_dense(lane) ? step->dense.from : step->runs.from;
    }
    std::reverse(pieces.begin(), pieces.end());
    return pieces;
  }

  std::span<const std::int16_t> weights_;
  const BestSettings& settings_;
  std::vector<Step> steps_;
  std::array<Lead, kLanes> lead_{};
  std::array<Lead, kLanes> price_{};  ///< of the block at hand
  std::uint32_t open_run_ = 0;        ///< zeros before the block, if they count
};

}  // namespace

std::vector<Piece> find_pieces(std::span<const std::int16_t> weights, const BestSettings& settings) {
  assert(!weights.empty() && settings.block_weights <= kMaxSumWeights && settings.min_zero_run >= 16);
  return PieceSearch(weights, settings).run();
}

}  // namespace weightmill::mlw
