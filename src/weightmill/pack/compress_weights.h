#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <weightmill/codec/codec.h>
#include <weightmill/model/accelerator.h>
#include <weightmill/model/packed.h>
#include "weight_volume.h"

namespace weightmill {

/// What the classic weight compressor of Vela wants to know about a weight tensor.  [docs/scale-records.md §6]
struct CompressRequest {
  WeightVolume weights;
  NpuBlockType block_type = NpuBlockType::convolution;
  int ofm_block_depth = 0;  ///< of the whole NPU
  int ofm_depth_step = 0;   ///< output channels of a brick
  int ifm_bits = 8;
  int dilation_h = 1, dilation_w = 1;
  bool flip = false;  ///< transposed convolution
  bool double_buffer = false;
  mlw::Effort effort = mlw::Effort::reference;
  int jobs = 1;
};

/// A weight tensor cut into bricks of `ofm_depth_step` output channels, each compressed for all cores.
struct CompressedWeights {
  std::vector<std::vector<std::uint8_t>> values;              ///< one for each brick: core after core
  std::vector<std::vector<std::uint64_t>> substream_offsets;  ///< in each brick: 0, then the length after each core
  std::vector<std::uint64_t> offsets;                         ///< of each brick from the first, and the total
  std::vector<double> scales;                                 ///< of each brick: bytes / weights of a full brick
  double worst_scale = 0;
  double mean_scale = 0;  ///< in the order of numpy's pairwise sum
  std::array<std::uint64_t, 4> storage_shape{1, 1, 1, 0};
  std::array<int, 4> brick_size{};               ///< height, width, input and output channels
  Traversal traversal = Traversal::depth_first;  ///< vector products: no choice was made, depth first
};

/// Compresses for U55 and U65.
/// Throws: unsupported for U85; bad_request if a weight is outside [-255, 255], a depth, step or dilation is not
/// positive, or a core's share of `ofm_block_depth` is none.
CompressedWeights compress_weights(const CompressRequest& request, const Accelerator& accelerator);

/// Mean of `values` in the order in which numpy adds them. 0 for none.
double numpy_mean(std::span<const double> values);

/// Remembers what was compressed for one graph and accelerator. Tensors with equal `equivalence_id` must have equal
/// values.
class WeightCache {
 public:
  /// As compress_weights(), or the earlier result where all that the bytes depend on is equal; its storage shape is
  /// made anew, since that depends on the buffering.
  CompressedWeights compress(std::uint64_t equivalence_id, const CompressRequest& request,
                             const Accelerator& accelerator);
  std::size_t n_hits() const noexcept { return n_hits_; }

 private:
  struct Key {
    std::uint64_t equivalence_id;
    NpuBlockType block_type;
    int ofm_block_depth, ofm_depth_step, ifm_bits, dilation_h, dilation_w;
    bool flip;
    mlw::Effort effort;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, CompressedWeights> entries_;
  std::size_t n_hits_ = 0;
};

/// The share of `ofm_block_depth` that belongs to `core`.
constexpr int core_block_depth(int ofm_block_depth, int cores, int core) {
  return (ofm_block_depth - 1 - core) / cores + 1;
}

}  // namespace weightmill
