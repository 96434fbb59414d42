#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "layer.h"
#include "padded_image.h"

namespace weightmill {

/// A run of elements that the kernel reads at one place: from tap (d, h, w), channel element `first`.
struct TapRun {
  std::array<std::int64_t, 3> tap{};
  std::int64_t first = 0;
};

/// The weights of a layer in the order that the convolution kernels read.
struct WeightLayout {
  bool depthwise = false;           ///< each padded channel meets only itself; `groups` then holds [run, C]
  std::int64_t channel_repeat = 1;  ///< depthwise: the multiplier
  std::size_t run_length = 0;       ///< elements; depthwise: C
  std::vector<TapRun> runs;
  std::vector<std::vector<std::int16_t>> groups;  ///< packed panels of each group
  std::size_t channels_of_group = 0;              ///< O; depthwise: C
  std::size_t inputs_of_group = 0;                ///< I; depthwise: 0
};

/// A transposed layer's kernel comes out reversed in all spatial axes.
WeightLayout lay_out_weights(const IntegerLayer& layer);

/// Where the runs begin in a padded image, in elements from the first tap's first element.
std::vector<std::size_t> run_offsets(const WeightLayout& layout, const ImagePlan& plan);

}  // namespace weightmill
