#include "sections.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <limits>

#include <weightmill/base/bits.h>

#include "code_value.h"

namespace weightmill::mlw {
namespace {

using Place = std::int32_t;  // of a weight; fits what encode() takes

constexpr unsigned kWindows = 5;  // of 32, 64 … 512 weights that are not zero; twice that once there is a palette
constexpr Place kSmallestWindow = 32;
constexpr int kNoPaletteBits = 6;  ///< taken for an index while there is no palette
constexpr int kMaxBits = 8;
constexpr int kEntryCostBits = 8;
constexpr int kPaletteCostBits = 20;
constexpr Place kMaxEntries = 32;

/// Bits of an index into `count` palette entries as the estimate takes them.
constexpr int estimate_bits(Place count) noexcept {
  return count <= 1 ? 0 : std::min(kMaxBits, static_cast<int>(index_bits(static_cast<std::uint64_t>(count))));
}

/// Estimated gain of a palette of `distinct` values for `n` weights whose indices take `old_bits` now.
constexpr int saved_bits(int n, int old_bits, Place distinct, Place zeros_apart) noexcept {
  return n * (15 * old_bits - 15 * estimate_bits(distinct - zeros_apart)) / 16 - kEntryCostBits * distinct -
         kPaletteCostBits;
}

/// max_distinct[apart][bits][w]: the most distinct values with which a window of 32 << w weights still gains. The gain
/// falls with the number of values, so that counting may stop there.
using MaxDistinct = std::array<std::array<std::array<std::int16_t, kWindows + 1>, kMaxBits + 1>, 2>;

constexpr MaxDistinct make_max_distinct(bool has_palette) {
  MaxDistinct limits{};
  for (Place apart = 0; apart < 2; ++apart) {
    const Place most = has_palette ? 2 * kMaxWeight + 1 : kMaxEntries + apart;
    for (int bits = 0; bits <= kMaxBits; ++bits) {
      for (unsigned w = 0; w <= kWindows; ++w) {
        Place distinct = 0;
        while (distinct < most && saved_bits(kSmallestWindow << w, bits, distinct + 1, apart) > 0) ++distinct;
        limits[static_cast<std::size_t>(apart)][static_cast<std::size_t>(bits)][w] =
            static_cast<std::int16_t>(distinct);
      }
    }
  }
  return limits;
}
constexpr MaxDistinct kMaxDistinctAtStart = make_max_distinct(false);
constexpr MaxDistinct kMaxDistinctInSection = make_max_distinct(true);

/// The last place of each weight but zero; tells how many distinct ones there are since any place.
class LastPlaces {
 public:
  LastPlaces() { last_.fill(-1); }
  Place& operator[](std::int16_t weight) noexcept { return last_[static_cast<std::size_t>(weight + kCentre)]; }

  /// Number of weights that occur at `start` or later, or some number above `limit` if there are more than that.
  Place count_since(Place start, Place limit) const noexcept {
    Place count = 0;
    for (std::size_t i = 0; i < kBlocks / 2 && count <= limit; ++i) {  // small weights first: mostly they are enough
      count += count_block(kBlocks / 2 - 1 - i, start) + count_block(kBlocks / 2 + i, start);
    }
    return count;
  }

 private:
  static constexpr int kCentre = 256;
  static constexpr std::size_t kBlockSize = 32;
  static constexpr std::size_t kBlocks = 2 * kCentre / kBlockSize;

  Place count_block(std::size_t block, Place start) const noexcept {
    Place count = 0;
    for (std::size_t i = 0; i < kBlockSize; ++i) count += last_[block * kBlockSize + i] >= start ? 1 : 0;
    return count;
  }

  std::array<Place, 2 * kCentre> last_;
};

/// Walks over the weights that are not zero. What the rule says of every single weight can change something only where
/// such a weight completes a window (and at the zeros that follow it), and in a section with a palette where a new
/// value comes up; the zeros between two places are known from the number of other weights there.
class SectionSearch {
 public:
  explicit SectionSearch(std::span<const std::int16_t> weights) : weights_(weights) {
    nonzero_.reserve(kBlock + kHistory);
  }

  std::vector<std::size_t> run() {
    for (std::size_t begin = 0; begin < weights_.size(); begin += kBlock) {
      load_block(begin, std::min(begin + kBlock, weights_.size()));
      search_block();
    }
    meet_last_zeros();
    return std::move(starts_);
  }

 private:
  static constexpr std::size_t kBlock = 8192;
  /// A window begins at most 1026 weights, zeros not counted, before its end.
  static constexpr Place kHistory = 2 * (kSmallestWindow << (kWindows - 1)) + 2;

  /// Lists the places of the block's weights that are not zero, behind the last ones of the blocks before.
  void load_block(std::size_t begin, std::size_t end) {
    const auto n_old = static_cast<Place>(nonzero_.size());
    const Place dropped = std::max(0, n_old - kHistory);
    nonzero_.erase(nonzero_.begin(), nonzero_.begin() + dropped);
    first_listed_ += dropped;
    const std::size_t kept = nonzero_.size();
    nonzero_.resize(kept + (end - begin));
    Place* out = nonzero_.data() + kept;
    for (std::size_t i = begin; i < end; ++i) {
      *out = static_cast<Place>(i);
      out += weights_[i] != 0 ? 1 : 0;
    }
    nonzero_.resize(static_cast<std::size_t>(out - nonzero_.data()));
  }

  void search_block() {
    const Place end = first_listed_ + static_cast<Place>(nonzero_.size());
    while (next_ < end) {
      const Place unit = has_palette_ ? 2 * kSmallestWindow : kSmallestWindow;
      const Place ahead = unit - (next_ - nonzero_before_) % unit;  // up to the weight that completes a window
      const bool at_window = ahead == unit && next_ > nonzero_before_;
      const Place stop = std::min(end, at_window ? next_ + 1 : next_ + ahead + 1);
      const bool whole = has_palette_ ? advance_in_section(stop) : advance(stop);
      if (whole && (next_ - 1 - nonzero_before_) % unit == 0 && next_ - 1 > nonzero_before_) {
        complete_windows(place(next_ - 1));
      }
    }
  }

  /// Zeros behind the last other weight may be the first ones of its section.
  void meet_last_zeros() {
    const auto n_weights = static_cast<Place>(weights_.size());
    if (has_palette_ && !zero_seen_ && zeros_before(n_weights, next_) > 0) meet_new_value(place(next_ - 1) + 1, next_);
  }

  // The loops below run on locals: the compiler must take it that storing a place changes a member.

  bool advance(Place stop) noexcept {
    const std::int16_t* weights = weights_.data();
    const Place* end = nonzero_.data() + (stop - first_listed_);
    for (const Place* at = nonzero_.data() + (next_ - first_listed_); at != end; ++at) last_[weights[*at]] = *at;
    next_ = stop;
    return true;
  }

  /// False if a section ended on the way.
  bool advance_in_section(Place stop) {
    while (next_ < stop) {
      next_ = advance_to_new_value(stop);
      if (next_ == stop) break;
      const Place here = place(next_);
      if (!zero_seen_ && zeros_before(here, next_) > 0 && meet_new_value(place(next_ - 1) + 1, next_)) return false;
      Place& last = last_[weight(next_)];
      if (last < begin_ && meet_new_value(here, next_)) return false;
      last = here;
      ++next_;
    }
    return true;
  }

  /// Goes on to the number of the first weight that is new in the section, or has the first of its zeros before it.
  Place advance_to_new_value(Place stop) noexcept {
    const std::int16_t* weights = weights_.data();
    const Place* places = nonzero_.data();
    const Place first_listed = first_listed_;
    const Place begin = begin_;
    const Place without_zeros = zero_seen_ ? std::numeric_limits<Place>::max() : begin_ - nonzero_before_;
    Place number = next_;
    for (; number < stop; ++number) {
      const Place here = places[number - first_listed];
      Place& last = last_[weights[here]];
      if ((last < begin) | (here - number > without_zeros)) break;
      last = here;
    }
    return number;
  }

  /// A value that the palette lacks: when the palette outgrows a power of two, the section may be at its end. Returns
  /// whether it is; the next one then begins at `here`, before which there are `n_nonzero` weights that are not zero.
  bool meet_new_value(Place here, Place n_nonzero) {
    const Place apart = zeros_apart(here, n_nonzero);
    zero_seen_ = zero_seen_ || weights_[static_cast<std::size_t>(here)] == 0;
    ++palette_size_;
    const Place entries = palette_size_ - 1 - apart;
    const bool outgrown = entries >= 0 && ((entries - 1) & entries) == 0;
    const bool large = n_nonzero - nonzero_before_ > 512 || palette_size_ - apart > kMaxEntries;
    if (!outgrown || !large) return false;
    starts_.push_back(static_cast<std::size_t>(here));
    begin_ = here;
    nonzero_before_ = n_nonzero;
    has_palette_ = false;
    return true;
  }

  /// The weight at `here` has completed a window, which is then tried there and at each of the zeros that follow.
  void complete_windows(Place here) {
    try_windows(here, zeros_apart(here, next_ - 1));
    const Place end = end_of_zeros(here + 1);
    for (Place i = here + 1; i < end;) {
      const Place apart = zeros_apart(i, next_);
      if (has_palette_ && !zero_seen_) meet_new_value(i, next_);
      i = try_windows(i, apart) ? i + 1 : next_try(i, apart, end);
    }
  }

  Place end_of_zeros(Place first) const noexcept {
    const auto end =
        std::find_if(weights_.begin() + first, weights_.end(), [](std::int16_t weight) { return weight != 0; });
    return static_cast<Place>(end - weights_.begin());
  }

  /// Where in a run of zeros a window that did not gain at `here` may gain: where zeros become a quarter of the
  /// section.
  Place next_try(Place here, Place apart, Place end) const noexcept {
    if (apart != 0) return end;
    const Place others = next_ - nonzero_before_;
    Place length = std::max(here - begin_ + 1, others / 3 * 4);
    while (length - others <= length / 4) ++length;
    return std::min(end, begin_ + length);
  }

  /// Tries the windows that end at `here`; true if the section changed.
  bool try_windows(Place here, Place apart) {
    bool changed = false;
    for (unsigned window = 0; window < kWindows; ++window) {
      const unsigned w = has_palette_ ? window + 1 : window;
      const Place n = kSmallestWindow << w;
      const Place count = next_ - 1 - nonzero_before_;
      if (count <= 0 || count % n != 0) continue;
      changed = try_window(here, w, apart) || changed;
    }
    return changed;
  }

  /// Would the last 32 << w weights be cheaper with a palette of their own?
  bool try_window(Place here, unsigned w, Place apart) {
    const auto& limits = has_palette_ ? kMaxDistinctInSection : kMaxDistinctAtStart;
    const int bits = has_palette_ ? estimate_bits(palette_size_ - apart) : kNoPaletteBits;
    const Place limit = limits[static_cast<std::size_t>(apart)][static_cast<std::size_t>(bits)][w];
    if (limit == 0) return false;
    const Place second_before = next_ - (kSmallestWindow << w) - 2;  // of the weights that are not zero
    const Place first = std::max(nonzero_before_, second_before);
    const Place start = second_before < nonzero_before_ ? begin_ : place(first);
    const bool has_zero = here - start + 1 > next_ - first;
    const Place distinct = last_.count_since(start, limit) + (has_zero ? 1 : 0);
    if (distinct > limit) return false;
    palette_size_ = distinct;
    has_palette_ = true;
    zero_seen_ = has_zero;
    begin_ = start;
    nonzero_before_ = first;
    if (starts_.back() != static_cast<std::size_t>(start)) starts_.push_back(static_cast<std::size_t>(start));
    return true;
  }

  /// 1 if zeros are so common before `here` that they will not need a palette entry.
  Place zeros_apart(Place here, Place n_nonzero) const noexcept {
    return zeros_before(here, n_nonzero) > (here - begin_) / 4 ? 1 : 0;
  }
  Place zeros_before(Place here, Place n_nonzero) const noexcept {
    return here - begin_ - (n_nonzero - nonzero_before_);
  }

  Place place(Place number) const noexcept { return nonzero_[static_cast<std::size_t>(number - first_listed_)]; }
  std::int16_t weight(Place number) const noexcept { return weights_[static_cast<std::size_t>(place(number))]; }

  std::span<const std::int16_t> weights_;
  std::vector<std::size_t> starts_{0};
  LastPlaces last_;
  std::vector<Place> nonzero_;  ///< places of weights that are not zero, from number first_listed_ on
  Place first_listed_ = 0;
  Place next_ = 0;              ///< number of weights seen that are not zero
  Place begin_ = 0;             ///< of the section
  Place nonzero_before_ = 0;    ///< weights before it that are not zero
  Place palette_size_ = 0;
  bool has_palette_ = false;
  bool zero_seen_ = false;      ///< since begin_; kept while has_palette_
};

}  // namespace

std::vector<std::size_t> reference_section_starts(std::span<const std::int16_t> weights) {
  assert(weights.size() <= static_cast<std::size_t>(std::numeric_limits<Place>::max()));
  return SectionSearch(weights).run();
}

}  // namespace weightmill::mlw
