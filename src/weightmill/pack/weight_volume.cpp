#include "weight_volume.h"

#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

constexpr int kLargestWeight = 255;
constexpr int kLargestSparseWeight = 127;
constexpr int kSparseGroup = 4;
constexpr int kLeastZerosInGroup = 2;

void check_extents(const WeightValues& values, const std::array<int, 4>& ohwi) {
  constexpr std::array<const char*, 4> kNames{"output channels", "height", "width", "input channels"};
  std::uint64_t product = 1;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (ohwi[axis] < 1)
      fail(ErrorCode::bad_request, "weights", fmt::format("{} {}, wanted at least 1", ohwi[axis], kNames[axis]));
    if (__builtin_mul_overflow(product, static_cast<std::uint64_t>(ohwi[axis]), &product)) {
      fail(ErrorCode::bad_request, "weights", "the shape's product does not fit 64 bits");
    }
  }
  const std::uint64_t size = std::visit([](const auto& span) { return span.size(); }, values);
  if (size != product) {
    fail(ErrorCode::bad_request, "weights", fmt::format("{} values for a shape of {}", size, product));
  }
}

/// Calls body(value) for each weight, o outermost, i innermost, until it returns false. Returns whether it never did.
template <class Body>
bool for_each_weight(const WeightVolume& volume, Body&& body) {
  return std::visit(
      [&](const auto& values) {
        const auto [n_o, n_h, n_w, n_i] = volume.ohwi;
        for (int o = 0; o < n_o; ++o) {
          for (int y = 0; y < n_h; ++y) {
            for (int x = 0; x < n_w; ++x) {
              std::ptrdiff_t at = volume.origin + o * volume.stride[0] + y * volume.stride[1] + x * volume.stride[2];
              for (int i = 0; i < n_i; ++i, at += volume.stride[3]) {
                if (!body(i, static_cast<int>(values[static_cast<std::size_t>(at)]) - volume.zero_point)) return false;
              }
            }
          }
        }
        return true;
      },
      volume.values);
}

/// Whether the element type and zero point alone keep all weights in range.
bool surely_in_range(const WeightVolume& volume) {
  return std::visit(
      [&]<class T>(const std::span<const T>&) {
        const int low = static_cast<int>(std::numeric_limits<T>::min()) - volume.zero_point;
        const int high = static_cast<int>(std::numeric_limits<T>::max()) - volume.zero_point;
        return low >= -kLargestWeight && high <= kLargestWeight;
      },
      volume.values);
}

}  // namespace

std::uint64_t WeightVolume::n_weights() const noexcept {
  std::uint64_t product = 1;
  for (const int extent : ohwi) product *= static_cast<std::uint64_t>(extent);
  return product;
}

WeightVolume volume_from_ohwi(WeightValues values, std::array<int, 4> ohwi, int zero_point) {
  check_extents(values, ohwi);
  const std::ptrdiff_t i = ohwi[3], wi = i * ohwi[2], hwi = wi * ohwi[1];
  return {values, ohwi, {hwi, wi, i, 1}, 0, zero_point};
}

WeightVolume volume_from_hwio(WeightValues values, std::array<int, 4> ohwi, int zero_point) {
  check_extents(values, ohwi);
  const std::ptrdiff_t o = ohwi[0], io = o * ohwi[3], wio = io * ohwi[2];
  return {values, ohwi, {1, wio, io, o}, 0, zero_point};
}

WeightVolume flipped(WeightVolume volume) {
  for (const std::size_t axis : {std::size_t{1}, std::size_t{2}}) {
    volume.origin += (volume.ohwi[axis] - 1) * volume.stride[axis];
    volume.stride[axis] = -volume.stride[axis];
  }
  return volume;
}

WeightVolume channels_of(WeightVolume volume, int first, int step, int count) {
  volume.origin += first * volume.stride[0];
  volume.stride[0] *= step;
  volume.ohwi[0] = count;
  return volume;
}

bool has_weight_out_of_range(const WeightVolume& volume) {
  if (surely_in_range(volume)) return false;
  return !for_each_weight(volume,
                          [](int, int weight) { return -kLargestWeight <= weight && weight <= kLargestWeight; });
}

bool is_2_4_sparse(const WeightVolume& volume) {
  int n_nonzero = 0;  // of the group so far; channels beyond the last count as zeros
  return for_each_weight(volume, [&](int i, int weight) {
    if (i % kSparseGroup == 0) n_nonzero = 0;
    n_nonzero += weight != 0 ? 1 : 0;
    return n_nonzero <= kSparseGroup - kLeastZerosInGroup && -kLargestSparseWeight <= weight &&
           weight <= kLargestSparseWeight;
  });
}

}  // namespace weightmill
