#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

namespace weightmill {

/// Constant weights seen as an OHWI volume, whatever order they lie in: weight (o, y, x, i) is
/// values[origin + o * stride[0] + y * stride[1] + x * stride[2] + i * stride[3]] - zero_point.
/// A look only: slices for cores and flipped kernels are other strides over the same values.
struct WeightVolume {
  std::variant<std::span<const std::int8_t>, std::span<const std::uint8_t>, std::span<const std::int16_t>> values;
  std::array<int, 4> ohwi{};
  std::array<std::ptrdiff_t, 4> stride{};
  std::ptrdiff_t origin = 0;
  int zero_point = 0;

  int n_channels() const noexcept { return ohwi[0]; }
  std::uint64_t n_weights() const noexcept;
};

using WeightValues = decltype(WeightVolume::values);

/// A dense volume whose axes lie in memory in the order `O H W I`, `H W I O` or, for depthwise weights [1, H, W, C],
/// as O = C, I = 1. `ohwi` has the extents as O, H, W, I; `values` has their product.
/// Throws: bad_request if an extent is not positive or the number of values is another.
WeightVolume volume_from_ohwi(WeightValues values, std::array<int, 4> ohwi, int zero_point);
WeightVolume volume_from_hwio(WeightValues values, std::array<int, 4> ohwi, int zero_point);

/// `volume` with height and width reversed: what a transposed convolution is run with.
WeightVolume flipped(WeightVolume volume);

/// Output channels first, first + step, … of `volume`, `count` of them. Requires that they exist.
WeightVolume channels_of(WeightVolume volume, int first, int step, int count);

/// Whether any weight lies outside [-255, 255], which is what a stream can carry.
bool has_weight_out_of_range(const WeightVolume& volume);

/// Whether the weights may be coded as 2:4 sparse: in each aligned group of four input channels at least two weights
/// are zero, and all lie in [-127, 127].
bool is_2_4_sparse(const WeightVolume& volume);

}  // namespace weightmill
