#pragma once

#include <cstdint>
#include <vector>

namespace weightmill {

/// real = (q - zero_point) * scale, per tensor or along one axis. Empty `scale`: the tensor is not quantized.
struct Affine {
  std::vector<float> scale;              ///< one, or one for each index of `axis`; > 0; real units per step
  std::vector<std::int64_t> zero_point;  ///< as many as `scale`
  int axis = 0;                          ///< meaningless where there is one scale

  bool empty() const noexcept { return scale.empty(); }
  bool per_channel() const noexcept { return scale.size() > 1; }
};

}  // namespace weightmill
