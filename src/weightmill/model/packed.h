#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <weightmill/model/accelerator.h>
#include <weightmill/model/dtype.h>
#include <weightmill/model/fixed_point.h>
#include <weightmill/model/graph.h>

namespace weightmill {

/// Which way the NPU walks through the weights of a block.
enum class Traversal : std::uint8_t { depth_first, part_kernel_first, depthwise };

/// What the NPU runs a layer as.
enum class NpuBlockType : std::uint8_t { convolution, depthwise, vector_product };

/// How a weight stream is coded. All but `standard` are U85's.
enum class StreamFormat : std::uint8_t {
  standard,
  sparse,       ///< standard coding; order of 2:4 sparse weights
  fast,         ///< fixed-width coding, one stream for all cores
  fast_sparse,  ///< fast coding of the order of 2:4 sparse weights
};

/// Whose arithmetic makes multiplier and shift from the tensors' scales  [docs/scale-records.md].
enum class ScalingRule : std::uint8_t { v2020, vela5, regor };

/// Field widths of a 10-byte scale-and-bias record  [docs/scale-records.md].
enum class RecordFormat : std::uint8_t {
  bias40_scale32,  ///< U55, U65
  bias32_scale31,  ///< U85, 32-bit accumulator
  bias48_scale15,  ///< U85, 48-bit accumulator
};

/// "depth_first" … : the words that manifests, tables and Python use.
std::string_view name_of(Traversal traversal) noexcept;
std::string_view name_of(NpuBlockType type) noexcept;
std::string_view name_of(StreamFormat format) noexcept;
std::string_view name_of(ScalingRule rule) noexcept;
std::string_view name_of(RecordFormat format) noexcept;

/// Everything that the order of the weights in a stream depends on, apart from the weights: one depth slice, one core.
/// U55 and U65 ignore `ifm_block_depth`, `stride_*`, `sparse` and `macs_per_cycle`; U85 ignores `ifm_ublock_depth`.
struct BrickGeometry {
  NpuFamily family = NpuFamily::u55;
  Traversal traversal = Traversal::depth_first;
  int ifm_bits = 8;           ///< of the feature map: 8, 16 or 32
  int ofm_block_depth = 16;   ///< U55, U65: of this core's share of the block
  int ifm_block_depth = 0;
  int ofm_ublock_depth = 8;
  int ifm_ublock_depth = 8;
  int stride_y = 1, stride_x = 1;
  int sub_kernel_height = 8, sub_kernel_width = 8;  ///< 8 / dilation
  bool sparse = false;
  int cores = 1;              ///< U85: over how many streams the channels of a ublock are dealt
  int core = 0;               ///< U85: which of them
  int macs_per_cycle = 0;
};

/// One core's weight stream of one depth slice.
struct PackedStream {
  int core = 0;
  std::uint64_t offset = 0;      ///< in PackedLayer::weights of the layer that holds the bytes; a multiple of 16
  std::uint64_t size_bytes = 0;  ///< a multiple of 16; 0 where the core has no channels
  std::uint64_t n_ordered = 0;   ///< weights the stream decodes to: padding zeros included
  int first_channel = 0;         ///< U55, U65: the core has every `channel_step`-th channel of the slice from here on.
  int channel_step = 1;          ///< U85: 1, all channels of the slice; the ublock's are dealt out by the order
  BrickGeometry geometry;        ///< orders the OHWI volume of exactly these channels
  std::string stated_sha256;     ///< of the bytes, as the manifest says; empty where none was read
};

/// The scale-and-bias records that one core reads for one depth slice.
struct PackedScales {
  int core = 0;
  std::uint64_t offset = 0;      ///< in PackedLayer::scales; a multiple of 16
  std::uint64_t size_bytes = 0;  ///< 10 * (n_records + n_zero_records), rounded up to 16 with zeros
  int n_records = 0;
  int n_zero_records = 0;        ///< U85: records of channels that do not exist, all bytes zero
  int first_channel = 0;         ///< record k is of channel first_channel + k * channel_step
  int channel_step = 1;
  std::string stated_sha256;     ///< of the bytes, as the manifest says; empty where none was read
};

/// What is brought to the NPU at once: output channels [first_channel, first_channel + n_channels).
struct DepthSlice {
  int first_channel = 0;
  int n_channels = 0;
  std::vector<PackedScales> scales;    ///< one for each core with channels; U85: one
  std::vector<PackedStream> streams;   ///< one for each core; fast formats: one
  double compression_scale = 0;        ///< bytes of the streams / weights of a full slice
};

/// What a record says about an output channel, as packed.
struct ChannelRecord {
  std::int64_t bias = 0;     ///< steps of ifm_scale * weight_scale
  FixedPoint rescale;        ///< accumulator -> ofm steps
  friend bool operator==(const ChannelRecord&, const ChannelRecord&) = default;
};

/// One weight tensor as an NPU operation needs it.
struct PackedLayer {
  // Where it comes from. Tensor numbers index the subgraph's `tensors`; -1: none.
  int subgraph = 0;
  int node = 0;
  OpKind kind = OpKind::other;
  std::string op_name;
  std::string role;                         ///< which matrix of an LSTM or SVDF: "input_to_forget" …; else "weights"
  int weights_tensor = -1, bias_tensor = -1, ifm_tensor = -1, ofm_tensor = -1;
  std::string weights_name, bias_name, ifm_name, ofm_name;

  // What was packed.
  std::array<int, 4> ohwi{};                ///< depthwise: O = channels, I = 1
  DType weights_dtype = DType::i8;
  DType ifm_dtype = DType::i8;
  std::vector<std::int64_t> zero_point;     ///< of the weights: one, or one for each output channel
  bool flipped = false;                     ///< height and width reversed (transposed convolution)
  int stride_y = 1, stride_x = 1;           ///< as the NPU runs it: 1 for a transposed convolution
  int dilation_y = 1, dilation_x = 1;

  // How.
  NpuBlockType block_type = NpuBlockType::convolution;
  Traversal traversal = Traversal::depth_first;
  StreamFormat format = StreamFormat::standard;
  int ofm_block_depth = 0;                  ///< of the whole NPU, before it is dealt to cores
  int ifm_block_depth = 0;                  ///< U85 only
  BlockShape ofm_ublock;
  int ofm_depth_step = 0;                   ///< channels of a full slice
  std::vector<DepthSlice> slices;
  std::vector<std::uint8_t> weights;        ///< all streams, slice after slice, core after core; empty if same_as >= 0
  int same_as = -1;                         ///< the layer, earlier in the list, whose `weights` these offsets are in

  // Scales and biases.
  ScalingRule scaling = ScalingRule::vela5;
  RecordFormat record_format = RecordFormat::bias40_scale32;
  bool rescaled_for_activation = false;     ///< fused sigmoid or tanh: scaled to 1/0x3000 instead of `ofm_scale`
  float ifm_scale = 1, ofm_scale = 1;
  std::vector<float> weight_scale;          ///< one, or one for each output channel
  std::vector<ChannelRecord> channels;      ///< one for each output channel
  std::vector<std::uint8_t> scales;         ///< all records, slice after slice, core after core

  // Sizes.
  std::uint64_t n_source_weights = 0;       ///< O * H * W * I
  std::uint64_t weights_size_bytes = 0;     ///< of the streams, also where they are another layer's
  std::uint64_t double_buffer_size_bytes = 0;  ///< twice the longest slice, or all where there are two slices or fewer
  double worst_compression_scale = 0;       ///< of `slices`
  double mean_compression_scale = 0;        ///< of `slices`
};

/// A weight-bearing operator, or one of its matrices, that stays as it is.
struct NotPacked {
  int subgraph = 0;
  int node = 0;
  std::string op_name;
  std::string tensor;  ///< the weights' name; empty where there is none
  std::string reason;  ///< a sentence: what was found, what was wanted
};

/// A model's weights as an Ethos-U fetches them.
struct Packed {
  Accelerator accelerator;
  std::string effort;            ///< the encoder: "reference", "regor", "fast", "best" or "max"
  std::string forms = "proven";  ///< of the stream format, which the last three use: "proven" or "all"
  ScalingRule scaling = ScalingRule::vela5;
  std::vector<PackedLayer> layers;       ///< in the model's order
  std::vector<NotPacked> not_packed;     ///< in the model's order
};

}  // namespace weightmill
