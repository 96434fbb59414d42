#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weightmill {

/// Reads weights of one element type.
template <class T>
struct WeightSource {
  using Value = std::int16_t;
  static constexpr Value kPadding = 0;
  const T* data;
  int zero_point;
  Value at(std::ptrdiff_t offset) const noexcept { return static_cast<Value>(data[offset] - zero_point); }
};

/// Reads weights' own places, so that the orders can be asked which weight goes where.
struct IndexSource {
  using Value = std::int32_t;
  static constexpr Value kPadding = -1;
  Value at(std::ptrdiff_t offset) const noexcept { return static_cast<Value>(offset); }
};

/// Writes ordered weights one after the other into memory that is large enough, with padding where there is no weight.
/// `o`, `i` may lie outside the volume, `y`, `x` may not.
template <class Source>
class OrderEmitter {
 public:
  using Value = typename Source::Value;

  OrderEmitter(Source source, std::array<int, 4> ohwi, std::array<std::ptrdiff_t, 4> stride, std::ptrdiff_t origin,
               Value* out) noexcept
      : source_(source), ohwi_(ohwi), stride_(stride), origin_(origin), out_(out) {}

  const Value* end() const noexcept { return out_; }

  void padding(std::int64_t count) noexcept { out_ = std::fill_n(out_, count, Source::kPadding); }

  /// Channels o .. o+n_o-1, of each the input channels i .. i+n_i-1.
  void rows(int o, int n_o, int y, int x, int i, int n_i) noexcept {
    const int n_valid_o = std::clamp(ohwi_[0] - o, 0, n_o);
    const int n_valid_i = std::clamp(ohwi_[3] - i, 0, n_i);
    std::ptrdiff_t offset = place(o, y, x, i);
    if (n_i == 8 && n_valid_i == 8 && stride_[3] == 1) {
      for (int k = 0; k < n_valid_o; ++k, offset += stride_[0]) eight(offset);
    } else {
      for (int k = 0; k < n_valid_o; ++k, offset += stride_[0]) {
        run(offset, stride_[3], n_valid_i);
        padding(n_i - n_valid_i);
      }
    }
    padding(static_cast<std::int64_t>(n_o - n_valid_o) * n_i);
  }

  /// Channels o .. o+n_o-1, of each input channel 0.
  void column(int o, int n_o, int y, int x) noexcept {
    const int n_valid = std::clamp(ohwi_[0] - o, 0, n_o);
    run(place(o, y, x, 0), stride_[0], n_valid);
    padding(n_o - n_valid);
  }

 private:
  std::ptrdiff_t place(int o, int y, int x, int i) const noexcept {
    return origin_ + o * stride_[0] + y * stride_[1] + x * stride_[2] + i * stride_[3];
  }
  void run(std::ptrdiff_t offset, std::ptrdiff_t stride, int n) noexcept {
    for (int k = 0; k < n; ++k) out_[k] = source_.at(offset + k * stride);
    out_ += n;
  }
  /// A fixed count lets the compiler widen and store a whole ublock row at once.
  void eight(std::ptrdiff_t offset) noexcept {
    for (int k = 0; k < 8; ++k) out_[k] = source_.at(offset + k);
    out_ += 8;
  }

  Source source_;
  std::array<int, 4> ohwi_;
  std::array<std::ptrdiff_t, 4> stride_;
  std::ptrdiff_t origin_;
  Value* out_;
};

/// A part of the kernel that fits the NPU's kernel walker.
struct SubKernel {
  int y0 = 0, x0 = 0;
  int height = 1, width = 1;
};

}  // namespace weightmill
