#pragma once

#include <cstdint>
#include <span>

#include <weightmill/model/dtype.h>
#include <weightmill/model/shape.h>

namespace weightmill {

/// Numbers of a model file: a view, row-major, little-endian, at any alignment.
struct Numbers {
  std::span<const std::uint8_t> bytes;
  DType dtype = DType::other;
  Shape shape;  ///< extents >= 0
  std::uint64_t size = 0;  ///< product of the extents; `bytes` holds as many
};

/// Whether load_floats() knows the type: floats from 16 bits on, integers from 4 bits on, boolean.
bool can_load_floats(DType dtype) noexcept;

/// `out.size()` numbers from number `first` on as float32, to nearest. Requires can_load_floats(numbers.dtype).
void load_floats(const Numbers& numbers, std::uint64_t first, std::span<float> out) noexcept;

/// One of them.
float number_at(const Numbers& numbers, std::uint64_t index) noexcept;

/// A float type to round to: float32, float16 or bfloat16.
struct Precision {
  DType type = DType::f32;
  /// bfloat16 as OpenVINO 2026.4 rounds: half a step is added where the lowest kept bit is odd, else the rest is cut
  /// off.
  bool bf16_cut_or_add = false;

  float round(float x) const noexcept { return type == DType::f32 ? x : round_to_half(x); }
  /// Half the distance of neighbouring numbers, relative to them: 2^-24, 2^-11 or 2^-8.
  double unit_roundoff() const noexcept;
  unsigned size_bytes() const noexcept { return type == DType::f32 ? 4 : 2; }
  /// round(x) as little-endian bytes; `out` holds size_bytes().
  void store(float x, std::uint8_t* out) const noexcept;

 private:
  float round_to_half(float x) const noexcept;
};

}  // namespace weightmill
