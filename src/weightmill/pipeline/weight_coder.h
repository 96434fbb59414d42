#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <weightmill/fold/constant_fold.h>
#include <weightmill/model/scale_layout.h>
#include <weightmill/model/weight_quantization.h>
#include <weightmill/quantize/weight_scales.h>

namespace weightmill {

/// A float weight as its operator sees it.
struct FloatWeight {
  std::string name;  ///< "tensor w", for messages
  Shape shape;
  /// Weights [first, first + out.size()) in the order of `shape`. May be called on several threads.
  std::function<void(std::uint64_t first, std::span<float> out)> read;
  std::optional<std::size_t> channel_axis;  ///< output channels; nothing: there is not one axis of them
  bool grouped = false;  ///< channel_axis counts within a group, and axis 0, another one, counts the groups
  std::optional<std::size_t> block_axis;  ///< what a dot product runs along, where that is one axis (a matrix)
  std::string no_channels;                ///< why channel_axis is missing
};

/// Which weights share a scale, and what type their codes have.  [docs/weight-only.md §1]
struct ScalePlan {
  DType code_type = DType::i8;
  bool search = false;              ///< for the scales with the least squared error
  std::optional<std::size_t> axis;  ///< nothing: one scale
  bool grouped = false;             ///< along axis 0 too
  std::int64_t block_size = 0;      ///< 0: not blocked
  ScaleLayout layout;
  Shape scale_shape;        ///< [], [C], [G, C], or the weight's with the axis divided by block_size
  std::string granularity;  ///< "per tensor", "per axis 0", "per axes 0 and 2", "blocks of 32 along axis 0"
  std::string note;         ///< why it is not what was asked for; empty if it is

  std::uint64_t n_scales() const { return n_elements(scale_shape, "scale"); }
  /// Bytes of codes, float32 scales and zero points.
  std::uint64_t size_bytes(const Shape& shape) const;
};

/// Blocks and 4-bit codes are for matrices whose rows are whole blocks; what is asked for beyond that becomes scales
/// per channel and 8-bit codes, and says so.
ScalePlan plan_scales(const FloatWeight& weight, const WeightQuantizeOptions& options);

/// Zero points of unsigned codes as ONNX and IR store them: two 4-bit ones share a byte, the first in its low half.
std::vector<std::uint8_t> packed_zero_points(const WeightScales& scales, DType code_type);

/// The scales of a weight, and what its codes lose.
struct CodedWeight {
  std::shared_ptr<const WeightScales> scales;  ///< of blocks, without the names of dead ones: there may be millions
  WeightError error;
  double worst_sqnr_db = 0;  ///< of the channel that loses most, dead ones apart; infinite where none loses
};

/// Reads the weight for its ranges, once more where scales are searched for, and for the error.
/// Throws: bad_file if a weight is NaN or infinite (names it).
CodedWeight code_weight(const FloatWeight& weight, const ScalePlan& plan, unsigned jobs);

/// The codes, block by block; reads the weight once more. `weight.read` must outlive them.
std::unique_ptr<ConstantFold> plan_codes(const FloatWeight& weight, const ScalePlan& plan, const WeightScales& scales);

/// Throws: internal if a code is further from its weight than rounding explains (names the weight).
void check_codes(const FloatWeight& weight, const ConstantFold& codes, const BlockResult& result);

/// Gives the codes to `sink`, packed, in order. Throws: as check_codes().
void write_codes(const FloatWeight& weight, const ScalePlan& plan, const WeightScales& scales, unsigned jobs,
                 const std::function<void(std::span<const std::uint8_t>)>& sink);

}  // namespace weightmill
