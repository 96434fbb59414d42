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

/// A Price over the cheapest lane's. A float holds these integers exactly, and every SSE has its minimum.
using Lead = float;
constexpr Lead kFarBehind = 1 << 22;
using Leads = std::array<Lead, kLanes>;

Lead capped(Price price) noexcept { return static_cast<Lead>(std::min<Price>(price, static_cast<Price>(kFarBehind))); }

/// The lanes of one kind.
struct Kind {
  unsigned begin, end;
};
constexpr Kind kDense{0, kDenseLanes}, kWithRuns{kDenseLanes, kLanes};

Kind kind_of(unsigned lane) noexcept { return lane < kDenseLanes ? kDense : kWithRuns; }

/// Four at a time: without that the compiler takes one after the other.
Lead lowest_of(const Leads& leads, Kind kind) noexcept {
  std::array<Lead, 4> lowest{kFarBehind, kFarBehind, kFarBehind, kFarBehind};
  for (unsigned lane = kind.begin; lane < kind.end; lane += 4) {
    for (unsigned i = 0; i < 4; ++i) lowest[i] = leads[lane + i] < lowest[i] ? leads[lane + i] : lowest[i];
  }
  return std::min(std::min(lowest[0], lowest[1]), std::min(lowest[2], lowest[3]));
}
static_assert(kDenseLanes % 4 == 0 && kRunLanes % 4 == 0);

unsigned first_lowest(const Leads& leads, Kind kind) noexcept {
  const auto begin = leads.begin() + kind.begin, end = leads.begin() + kind.end;
  return static_cast<unsigned>(std::min_element(begin, end) - leads.begin());
}

/// What it costs to enter a lane from the cheapest of its own kind, or of the other.
struct Entry {
  Lead price = kFarBehind;
  bool from_other = false;
};

/// What leads back from a block to the one before.
struct Step {
  std::size_t begin;
  Leads before;  ///< the block
  Entry dense, runs;

  const Entry& entry(Kind kind) const noexcept { return kind.begin == 0 ? dense : runs; }
};

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
    constexpr std::size_t kAtOnce = 8;
    const std::size_t n = weights_.size();
    const std::size_t stride = settings_.min_zero_run - kAtOnce;  // so much apart, one look lies within a long run
    for (std::size_t i = from; i + kAtOnce <= n;) {
      if (!are_zero<kAtOnce>(weights_.data() + i)) {
        i += stride;
        continue;
      }
      std::size_t begin = i, end = i + kAtOnce;
      while (begin > from && weights_[begin - 1] == 0) --begin;
      while (end < n && weights_[end] == 0) ++end;
      if (end - begin >= settings_.min_zero_run) return {begin, end};
      i = end;
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
    return lowest_of(lead_, kWithRuns) <
           lowest_of(lead_, kDense) + capped(settings_.slice_price() + BestSettings::kPaletteHeaderBits * kBit);
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

  static Entry cheaper(Lead own, Price own_price, Lead other, Price other_price) noexcept {
    const Lead stay = own + static_cast<Lead>(own_price), change = other + static_cast<Lead>(other_price);
    return change < stay ? Entry{change, true} : Entry{stay, false};
  }

  /// Takes the block that begins at `begin`, whose prices are known: each lane stays or is entered from the cheapest.
  void step(std::size_t begin, bool with_runs) {
    const Lead dense = lowest_of(lead_, kDense), runs = lowest_of(lead_, kWithRuns), lowest = std::min(dense, runs);
    for (Lead& lead : lead_) lead -= lowest;
    Step& step = steps_.emplace_back();
    step.begin = begin;
    std::copy(lead_.begin(), lead_.end(), step.before.begin());
    if (steps_.size() > 1) {
      const Price header = settings_.slice_price();
      const Price palette = header + BestSettings::kPaletteHeaderBits * kBit;
      const Price first_run = (BestSettings::kFillerBits + 1) * kBit;
      step.dense = cheaper(dense - lowest, header, runs - lowest, palette);
      step.runs = cheaper(runs - lowest, header, dense - lowest, palette + first_run);
    }
    take_lanes(kDense, step.dense.price);
    if (with_runs) {
      take_lanes(kWithRuns, step.runs.price);
    } else {
      std::fill(lead_.begin() + kDenseLanes, lead_.end(), kFarBehind);
    }
  }

  void take_lanes(Kind kind, Lead entry) {
    for (unsigned lane = kind.begin; lane < kind.end; ++lane) {
      const Lead before = entry < lead_[lane] ? entry : lead_[lane];
      const Lead after = before + price_[lane];
      lead_[lane] = after < kFarBehind ? after : kFarBehind;
    }
  }

  std::vector<Piece> trace() const {
    std::vector<Piece> pieces;
    unsigned lane = first_lowest(lead_, {0, kLanes});
    std::size_t end = weights_.size();
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      const Kind kind = kind_of(lane);
      const Entry& entry = step->entry(kind);
      if (entry.price >= step->before[lane] && step + 1 != steps_.rend()) continue;
      pieces.push_back({step->begin, end, kind.begin != 0});
      end = step->begin;
      const bool from_dense = (kind.begin == 0) != entry.from_other;
      lane = first_lowest(step->before, from_dense ? kDense : kWithRuns);
    }
    std::reverse(pieces.begin(), pieces.end());
    return pieces;
  }

  std::span<const std::int16_t> weights_;
  const BestSettings& settings_;
  std::vector<Step> steps_;
  Leads lead_{};
  Leads price_{};               ///< of the block at hand
  std::uint32_t open_run_ = 0;  ///< zeros before the block, if they count
};

}  // namespace

std::vector<Piece> find_pieces(std::span<const std::int16_t> weights, const BestSettings& settings) {
  assert(!weights.empty() && settings.block_weights <= kMaxSumWeights && settings.min_zero_run >= 16);
  return PieceSearch(weights, settings).run();
}

}  // namespace weightmill::mlw
