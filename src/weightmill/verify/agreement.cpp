#include "agreement.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

/// The sums one Agreement is made of.
struct Sums {
  double reference = 0;  ///< of squares
  double value = 0;      ///< of squares
  double error = 0;      ///< of squares
  double product = 0;
  double max_error = 0;
  std::uint64_t count = 0;

  void add(double wanted, double found) {
    const double difference = wanted - found;
    reference += wanted * wanted;
    value += found * found;
    error += difference * difference;
    product += wanted * found;
    max_error = std::max(max_error, std::abs(difference));
    ++count;
  }
};

double cosine_of(const Sums& sums) {
  if (sums.reference == 0 && sums.value == 0) return 1;
  if (sums.reference == 0 || sums.value == 0) return 0;
  return sums.product / (std::sqrt(sums.reference) * std::sqrt(sums.value));
}

Agreement to_agreement(const Sums& sums, double steps_per_unit) {
  Agreement result;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  result.sqnr_db = sums.error == 0 ? kInfinity : 10 * std::log10(sums.reference / sums.error);
  result.max_error_steps = sums.max_error * steps_per_unit;
  result.cosine = cosine_of(sums);
  result.count = sums.count;
  return result;
}

}  // namespace

std::vector<Agreement> channel_agreement(std::span<const float> reference, std::span<const std::int32_t> codes,
                                         const Grid& grid, std::size_t n_channels) {
  if (reference.size() != codes.size()) {
    fail(ErrorCode::bad_request, "agreement",
         fmt::format("{} codes against {} reference values", codes.size(), reference.size()));
  }
  if (n_channels == 0 || codes.size() % n_channels != 0) {
    fail(ErrorCode::bad_request, "agreement",
         fmt::format("{} values are no rows of {} channels", codes.size(), n_channels));
  }
  if (!(grid.steps_per_unit > 0) || !std::isfinite(grid.steps_per_unit)) {
    fail(ErrorCode::bad_request, "agreement", fmt::format("the grid has {} steps per unit", grid.steps_per_unit));
  }
  std::vector<Sums> sums(n_channels);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto steps = static_cast<double>(codes[i] - grid.zero_point);
    sums[i % n_channels].add(static_cast<double>(reference[i]), steps / grid.steps_per_unit);
  }
  std::vector<Agreement> result;
  for (const Sums& s : sums) result.push_back(to_agreement(s, grid.steps_per_unit));
  return result;
}

Agreement agreement(std::span<const float> reference, std::span<const std::int32_t> codes, const Grid& grid) {
  return channel_agreement(reference, codes, grid, 1).front();
}

}  // namespace weightmill
