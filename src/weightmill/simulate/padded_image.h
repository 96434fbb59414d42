#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "layer.h"
#include "simulate.h"

namespace weightmill {

/// One spatial axis of a convolution over a padded image. A transposed convolution is one of stride 1 over an image
/// whose elements stand `spread` apart, with the kernel reversed.
struct AxisPlan {
  std::int64_t in = 1;      ///< elements of the input
  std::int64_t out = 1;     ///< of the output
  std::int64_t padded = 1;  ///< of the padded image
  std::int64_t stride = 1;  ///< in the padded image
  std::int64_t dilation = 1;
  std::int64_t front = 0;   ///< where the input's first element stands in the padded image; may be negative
  std::int64_t spread = 1;  ///< positions from one input element to the next
};

/// Depth, height, width; depth is 1 for 2-D layers.
struct ImagePlan {
  std::array<AxisPlan, 3> axis;
  std::int64_t channels = 1;        ///< of the input
  std::int64_t channel_repeat = 1;  ///< every input channel stands this often in the padded image

  std::size_t padded_channels() const noexcept { return static_cast<std::size_t>(channels * channel_repeat); }
  std::size_t row_elements() const noexcept { return static_cast<std::size_t>(axis[2].padded) * padded_channels(); }
  std::size_t rows() const noexcept { return static_cast<std::size_t>(axis[0].padded * axis[1].padded); }
};

/// `in`: depth, height, width of the input.  Throws: as Simulator::run.
ImagePlan plan_image(const IntegerLayer& layer, const std::array<std::int64_t, 3>& in, std::int64_t channel_repeat);

/// Which part of an input code a pass of the convolution takes.
enum class CodePart : std::uint8_t {
  whole,   ///< q
  halved,  ///< q >> 1
  high,    ///< (q >> 1) >> 7
  low,     ///< (q >> 1) & 127
};

/// The padded image [padded depth, height, width, padded channels] of one input image, all of it `part` of codes, with
/// `zero` for real 0. Followed by `slack` elements that may be read but do not matter.
std::vector<std::int16_t> pad_image(const ImagePlan& plan, DType dtype, std::span<const std::uint8_t> image,
                                    std::int64_t zero, CodePart part, std::size_t slack);

}  // namespace weightmill
