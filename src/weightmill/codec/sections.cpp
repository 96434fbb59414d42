#include "sections.h"

#include <algorithm>
#include <array>

#include <weightmill/base/bits.h>

#include "code_value.h"

namespace weightmill::mlw {
namespace {

constexpr std::array<std::int64_t, 5> kWindows{32, 64, 128, 256, 512};  // weights that are not zero
constexpr std::int64_t kPaletteCostBits = 20;
constexpr std::int64_t kEntryCostBits = 8;

/// Bits of an index into `count` palette entries as the estimate below takes them.
std::int64_t estimate_bits(std::int64_t count) noexcept {
  return count <= 1 ? 0 : std::min<std::int64_t>(8, index_bits(static_cast<std::uint64_t>(count)));
}

/// Walks over the weights and keeps what the estimate needs: the section's begin, its zeros, and the last place of each
/// weight, which tells how many distinct ones there are since any place.
class SectionSearch {
 public:
  explicit SectionSearch(std::span<const std::int16_t> weights) : weights_(weights) { last_seen_.fill(-1); }

  std::vector<std::size_t> run() {
    for (position_ = 0; position_ < std::ssize(weights_); ++position_) step(weights_[static_cast<std::size_t>(position_)]);
    return std::move(starts_);
  }

 private:
  void step(int weight) {
    zeros_apart_ = zeros_ > (position_ - begin_) / 4 ? 1 : 0;
    std::int64_t& last = last_seen_[static_cast<std::size_t>(weight + kMaxWeight)];
    if (has_palette_ && last < begin_) meet_new_value();
    last = position_;
    if (weight == 0) ++zeros_;
    for (const std::int64_t window : kWindows) try_window(window);
  }

  /// A value that the palette lacks: when the palette outgrows a power of two, the section may be at its end.
  void meet_new_value() {
    ++palette_size_;
    const std::int64_t entries = palette_size_ - 1 - zeros_apart_;
    const bool outgrown = entries >= 0 && ((entries - 1) & entries) == 0;
    if (!outgrown || (position_ - begin_ - zeros_ <= 512 && palette_size_ - zeros_apart_ <= 32)) return;
    starts_.push_back(static_cast<std::size_t>(position_));
    begin_ = position_;
    has_palette_ = false;
    zeros_ = 0;
  }

  /// Would the weights of the last `window` (twice that, once there is a palette) be cheaper with a palette of their own?
  void try_window(std::int64_t window) {
    const std::int64_t n = has_palette_ ? 2 * window : window;
    const std::int64_t count = position_ - begin_ - zeros_;
    if (count <= 0 || count % n != 0) return;
    const std::int64_t start = window_start(n);
    const std::int64_t distinct = std::count_if(last_seen_.begin(), last_seen_.end(), [&](auto last) { return last >= start; });
    if (saved_bits(n, distinct) <= 0) return;
    palette_size_ = distinct;
    has_palette_ = true;
    begin_ = start;
    if (starts_.back() != static_cast<std::size_t>(start)) starts_.push_back(static_cast<std::size_t>(start));
    const auto first = weights_.begin() + start;
    zeros_ = std::count(first, weights_.begin() + position_ + 1, std::int16_t{0});
  }

  /// The place of the (n + 2)nd weight from the end that is not zero, or where the section begins.
  std::int64_t window_start(std::int64_t n) const noexcept {
    std::int64_t start = position_;
    for (std::int64_t counted = 0; start > begin_; --start) {
      if (weights_[static_cast<std::size_t>(start)] == 0) continue;
      if (counted == n + 1) break;
      ++counted;
    }
    return start;
  }

  /// Estimated gain of a new palette of `distinct` values for the last `n` weights.
  std::int64_t saved_bits(std::int64_t n, std::int64_t distinct) const noexcept {
    const std::int64_t new_bits = 15 * estimate_bits(distinct - zeros_apart_);
    if (!has_palette_ && distinct - zeros_apart_ > 32) return 0;
    const std::int64_t old_bits = has_palette_ ? 15 * estimate_bits(palette_size_ - zeros_apart_) : 90;
    return n * (old_bits - new_bits) / 16 - kEntryCostBits * distinct - kPaletteCostBits;
  }

  std::span<const std::int16_t> weights_;
  std::vector<std::size_t> starts_{0};
  std::array<std::int64_t, 2 * kMaxWeight + 1> last_seen_{};
  std::int64_t position_ = 0;
  std::int64_t begin_ = 0;
  std::int64_t zeros_ = 0;
  std::int64_t palette_size_ = 0;
  std::int64_t zeros_apart_ = 0;  ///< 1 while zeros are so common that they will not need a palette entry
  bool has_palette_ = false;
};

}  // namespace

std::vector<std::size_t> reference_section_starts(std::span<const std::int16_t> weights) {
  return SectionSearch(weights).run();
}

}  // namespace weightmill::mlw
