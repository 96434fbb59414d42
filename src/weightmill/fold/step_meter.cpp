#include "step_meter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "limits_check.h"

namespace weightmill {
namespace {

/// Meanings of up to this many scales are kept: 10 MiB.
constexpr std::uint64_t kMaxKnown = 1 << 18;

/// Twice the largest error of rounding a number that underflows, and the largest number.
struct Extremes {
  double smallest, largest;
};

Extremes extremes_of(DType type) noexcept {
  if (type == DType::f16) return {0x1p-24, 65504};
  return {type == DType::bf16 ? 0x1p-133 : 0x1p-149, 0x1.fep127};
}

/// What rounding a scale below the smallest normal number may add to the bound. Not for float16, whose range ends where
/// weights still are: there it would hide errors of whole steps.
double underflow_steps(DType type, double step, double largest) noexcept {
  if (type == DType::f16 || step == 0) return 0;
  return extremes_of(type).smallest * largest / std::abs(step);
}

/// Looks at all of them, which vectors do faster than stopping at the first that is not; false for NaN.
bool all_up_to(double limit, std::span<const double> errors) noexcept {
  std::int64_t n_up_to = 0;
  for (const double error : errors) n_up_to += error <= limit ? 1 : 0;
  return n_up_to == static_cast<std::int64_t>(errors.size());
}

}  // namespace

double step_bound(double unit_roundoff, double zero_point, double largest_code) noexcept {
  return kFoldTolerance + 8 * unit_roundoff * (std::abs(zero_point) + largest_code);
}

StepMeter::StepMeter(const OutputScales& scales, const Shape& affine_shape, const Shape& shape, const Codes& codes)
    : scales_(scales),
      codes_(codes),
      is_signed_(codes.lowest < 0),
      grid_(scales.rule().stored()),
      index_(affine_shape, shape) {
  if (scales.size() > kMaxKnown) return;
  known_.reserve(scales.size());
  for (std::uint64_t i = 0; i < scales.size(); ++i) known_.push_back(meaning_at(i));
}

StepMeter::Meaning StepMeter::meaning_at(std::uint64_t index) const {
  const double low = scales_.low(index), high = scales_.high(index);
  const ScaleAndZero own = scales_[index];
  const double largest = std::max(std::abs(codes_.lowest), std::abs(codes_.lowest + codes_.levels - 1));
  Meaning made{.low = low,
               .step = (high - low) / static_cast<double>(codes_.levels - 1),
               .scale = own.scale,
               .zero_point = codes_.zero_point == ZeroPoint::kept ? own.zero_point : 0,
               .bound = step_bound(grid_.unit_roundoff(), own.zero_point, largest),
               .possible = 0};
  made.bound += underflow_steps(grid_.type, made.step, std::abs(own.zero_point) + largest + 1);
  made.possible = possible_error(made);
  return made;
}

/// Without rounding an error is linear in the code, so it is largest at an end; the rounding of difference and product
/// is added.
double StepMeter::possible_error(const Meaning& meaning) const {
  constexpr double kOwnRounding = 1e-9;  // of error_of(), with a wide margin
  const Extremes extremes = extremes_of(grid_.type);
  const double roundings = (meaning.zero_point == 0 ? 1.001 : 2.001) * grid_.unit_roundoff();
  double worst = 0;
  for (const std::int32_t n : {0, codes_.levels - 1}) {
    const double value = (static_cast<double>(codes_.lowest + n) - meaning.zero_point) * meaning.scale;
    const double rounding = std::abs(value) * roundings + extremes.smallest;
    const double error = std::abs(value - (meaning.low + meaning.step * n)) + rounding;
    if (!(std::abs(value) + rounding < extremes.largest)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, error);
  }
  const double steps = worst / std::abs(meaning.step) + kOwnRounding;
  return std::isnan(steps) ? std::numeric_limits<double>::infinity() : steps;
}

const StepMeter::Meaning& StepMeter::meaning(std::uint64_t index, Meaning& made) const {
  if (!known_.empty()) return known_[index];
  return made = meaning_at(index);
}

double StepMeter::error_of(const Meaning& meaning, std::int32_t stored, std::int32_t defined) const {
  if (meaning.step == 0) return meaning.low == 0 ? 0 : std::numeric_limits<double>::infinity();
  const float difference = grid_.round(static_cast<float>(stored) - meaning.zero_point);
  const double value = grid_.round(difference * meaning.scale);
  return std::abs(value - (meaning.low + meaning.step * (defined - codes_.lowest))) / std::abs(meaning.step);
}

/// errors[n]: of lowest + n, stored as that.
void StepMeter::errors_of_all(const Meaning& meaning, std::span<double> errors) const {
  const auto n_codes = static_cast<std::int32_t>(errors.size());
  if (meaning.step == 0 || grid_.type != DType::f32) {
    for (std::int32_t n = 0; n < n_codes; ++n)
      errors[static_cast<std::size_t>(n)] = error_of(meaning, codes_.lowest + n, codes_.lowest + n);
    return;
  }
  // The same without branches: compilers make vectors of it.
  const double step_size = std::abs(meaning.step);
  for (std::int32_t n = 0; n < n_codes; ++n) {
    const float value = (static_cast<float>(codes_.lowest + n) - meaning.zero_point) * meaning.scale;
    errors[static_cast<std::size_t>(n)] = std::abs(value - (meaning.low + meaning.step * n)) / step_size;
  }
}

/// The largest error measured so far, here or in other blocks.
double StepMeter::known(const StepError& error) const noexcept {
  return std::max(largest_.load(std::memory_order_relaxed), error.max_steps);
}

/// Whether an error up to `possible` would be news.
bool StepMeter::can_exceed(double possible, const Meaning& meaning, const StepError& error) const noexcept {
  return !(possible <= known(error) && (error.exceeds || possible <= meaning.bound));
}

int StepMeter::largest_difference(Bytes a, Bytes b) const noexcept {
  const std::uint8_t flip = is_signed_ ? 0x80 : 0;  // makes the order of signed codes that of their bytes
  std::uint8_t largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<std::uint8_t>(a[i] ^ flip), y = static_cast<std::uint8_t>(b[i] ^ flip);
    largest = std::max(largest, static_cast<std::uint8_t>(std::max(x, y) - std::min(x, y)));
  }
  return largest;
}

/// Codes that are stored as they are defined.
void StepMeter::add_equal(const Meaning& meaning, Bytes stored, Bytes defined, StepError& error) const {
  if (!can_exceed(meaning.possible, meaning, error)) return;
  std::array<double, 256> room;
  const auto errors = std::span(room).first(static_cast<std::size_t>(codes_.levels));
  errors_of_all(meaning, errors);
  if (all_up_to(error.exceeds ? known(error) : std::min(known(error), meaning.bound), errors)) return;
  std::array<bool, 256> occurs{};
  for (std::size_t i = 0; i < stored.size(); ++i) occurs[stored[i]] |= stored[i] == defined[i];
  for (std::int32_t n = 0; n < codes_.levels; ++n) {
    if (occurs[static_cast<std::uint8_t>(codes_.lowest + n)])
      error.add(errors[static_cast<std::size_t>(n)], meaning.bound);
  }
}

/// Codes one by one, but for repetitions.
void StepMeter::add_pairs(const Meaning& meaning, Bytes stored, Bytes defined, bool differing_only,
                          StepError& error) const {
  const double apart = largest_difference(stored, defined) * std::abs(meaning.scale / meaning.step);
  if (!codes_.shifted && !can_exceed(meaning.possible + apart, meaning, error)) return;
  std::array<std::uint8_t, 256> seen{};  // by the code as defined: a bit for each of its neighbours
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (differing_only && stored[i] == defined[i]) continue;
    const int neighbour = stored[i] - defined[i] + 4;
    const unsigned bit = neighbour >= 0 && neighbour < 8 ? 1u << neighbour : 0u;
    if ((seen[defined[i]] & bit) != 0) continue;
    seen[defined[i]] = static_cast<std::uint8_t>(seen[defined[i]] | bit);
    error.add(error_of(meaning, wide(stored[i]), wide(defined[i])), meaning.bound);
  }
}

/// Elements that share a scale.
void StepMeter::add_run(const Meaning& meaning, Bytes stored, Bytes defined, StepError& error) const {
  error.bound_steps = std::max(error.bound_steps, meaning.bound);
  if (codes_.shifted) return add_pairs(meaning, stored, defined, /*differing_only=*/false, error);
  const bool differ = stored.data() != defined.data() && !std::ranges::equal(stored, defined);
  if (differ) add_pairs(meaning, stored, defined, /*differing_only=*/true, error);
  add_equal(meaning, stored, defined, error);
}

/// Elements that may each have another scale.
void StepMeter::add_each(std::uint64_t first, Bytes stored, Bytes defined, StepError& error) const {
  Meaning made;
  std::vector<std::uint64_t> scales(stored.size());
  index_.fill(first, scales);
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const Meaning& own = meaning(scales[i], made);
    error.bound_steps = std::max(error.bound_steps, own.bound);
    if (stored[i] == defined[i] && !can_exceed(own.possible, own, error)) continue;
    error.add(error_of(own, wide(stored[i]), wide(defined[i])), own.bound);
  }
}

void StepMeter::add_block(std::uint64_t first, Bytes stored, Bytes defined, StepError& error) const {
  Meaning made;
  if (scales_.size() == 1) return add_run(meaning(0, made), stored, defined, error);
  if (index_.run() < static_cast<std::uint64_t>(codes_.levels)) return add_each(first, stored, defined, error);
  for (std::size_t i = 0; i < stored.size();) {
    const std::uint64_t flat = first + i;
    const std::size_t n = std::min<std::uint64_t>(stored.size() - i, index_.run() - flat % index_.run());
    add_run(meaning(index_.at(flat), made), stored.subspan(i, n), defined.subspan(i, n), error);
    i += n;
  }
}

void StepMeter::add(std::uint64_t first, Bytes stored, Bytes defined, StepError& error) const {
  add_block(first, stored, defined, error);
  double known = largest_;
  while (known < error.max_steps && !largest_.compare_exchange_weak(known, error.max_steps)) {
  }
}

void StepMeter::add(std::uint64_t first, std::span<const std::int32_t> stored, std::span<const std::int32_t> defined,
                    StepError& error) const {
  Meaning made;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const Meaning& own = meaning(index_.at(first + i), made);
    error.add(error_of(own, stored[i], defined[i]), own.bound);
  }
}

}  // namespace weightmill
