#include "layer_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include <weightmill/base/bits.h>
#include <weightmill/base/error.h>

#include "brick_order.h"
#include "compress_weights.h"
#include "scale_bias.h"
#include "traversal.h"

namespace weightmill {
namespace {

/// Deep enough that a feature map is read few times, and the accumulators of a smallest block still fit the memory of
/// the smallest NPU: 64 channels x 4 bytes, twice, out of 16 KiB.
constexpr int kDefaultOfmBlockDepth = 64;

int ifm_bits_of(const LayerSource& source) { return static_cast<int>(size_bits(source.layer.ifm_dtype)); }

int default_block_depth(int n_channels, int unit) {
  const auto whole = static_cast<int>(ceil_to(static_cast<unsigned>(n_channels), static_cast<unsigned>(unit)));
  return std::min(std::max(kDefaultOfmBlockDepth, unit), whole);
}

int block_depth(const PackOptions& options, const Accelerator& accelerator, int n_channels, int unit) {
  if (options.ofm_block_depth == 0) return default_block_depth(n_channels, unit);
  const int largest = accelerator.largest_ofm_block.depth;
  if (options.ofm_block_depth < accelerator.cores || options.ofm_block_depth > largest) {
    fail(ErrorCode::bad_request, "ofm block depth",
         fmt::format("is {}, wanted {}..{} for {}", options.ofm_block_depth, accelerator.cores, largest,
                     accelerator.name));
  }
  return options.ofm_block_depth;
}

int depth_step(const PackOptions& options, int n_channels) {
  if (options.ofm_depth_step < 0) {
    fail(ErrorCode::bad_request, "ofm depth step",
         fmt::format("is {}, wanted 1 or more, or 0 for all channels", options.ofm_depth_step));
  }
  return options.ofm_depth_step == 0 ? n_channels : std::min(options.ofm_depth_step, n_channels);
}

BrickGeometry common_geometry(const LayerSource& source, const Accelerator& accelerator, const Candidate& candidate) {
  BrickGeometry g;
  g.family = accelerator.family;
  g.traversal = candidate.traversal;
  g.ifm_bits = ifm_bits_of(source);
  g.ofm_block_depth = candidate.ofm_block_depth;
  g.ifm_block_depth = candidate.ifm_block_depth;
  g.ofm_ublock_depth = candidate.ofm_ublock.depth;
  g.ifm_ublock_depth = accelerator.ifm_ublock.depth;
  g.stride_y = source.layer.stride_y;
  g.stride_x = source.layer.stride_x;
  g.sub_kernel_height = accelerator.largest_sub_kernel / source.layer.dilation_y;
  g.sub_kernel_width = accelerator.largest_sub_kernel / source.layer.dilation_x;
  g.sparse = candidate.format == StreamFormat::sparse || candidate.format == StreamFormat::fast_sparse;
  g.macs_per_cycle = accelerator.macs_per_cycle;
  return g;
}

/// Channels of the slice dealt to cores; each core orders its own.
void add_streams_u55(DepthSlice& slice, const BrickGeometry& common, const Accelerator& accelerator) {
  for (int core = 0; core < std::min(accelerator.cores, slice.n_channels); ++core) {
    PackedStream stream;
    stream.core = core;
    stream.first_channel = slice.first_channel + core;
    stream.channel_step = accelerator.cores;
    stream.geometry = common;
    stream.geometry.ofm_block_depth = core_block_depth(common.ofm_block_depth, accelerator.cores, core);
    slice.streams.push_back(stream);
  }
}

/// All channels in each core's order, which picks its own; in the fast formats one order of all cores.
void add_streams_u85(DepthSlice& slice, const BrickGeometry& common, const Accelerator& accelerator, bool fast) {
  for (int core = 0; core < (fast ? 1 : accelerator.cores); ++core) {
    PackedStream stream;
    stream.core = core;
    stream.first_channel = slice.first_channel;
    stream.geometry = common;
    stream.geometry.cores = accelerator.cores;
    stream.geometry.core = core;
    slice.streams.push_back(stream);
  }
}

void add_slices(Candidate& candidate, const LayerSource& source, const Accelerator& accelerator, int step) {
  const BrickGeometry common = common_geometry(source, accelerator, candidate);
  const bool fast = candidate.format == StreamFormat::fast || candidate.format == StreamFormat::fast_sparse;
  const int n_channels = source.layer.ohwi[0];
  for (int first = 0; first < n_channels; first += std::min(step, n_channels - first)) {
    DepthSlice& slice = candidate.slices.emplace_back();
    slice.first_channel = first;
    slice.n_channels = std::min(step, n_channels - first);
    if (accelerator.family == NpuFamily::u85) {
      add_streams_u85(slice, common, accelerator, fast);
    } else {
      add_streams_u55(slice, common, accelerator);
    }
  }
}

Candidate candidate_u55(const LayerSource& source, const Accelerator& accelerator, const PackOptions& options) {
  Candidate candidate;
  candidate.traversal = choose_traversal(source.layer.block_type, source.layer.ohwi, ifm_bits_of(source));
  candidate.ofm_ublock = accelerator.ofm_ublocks.front();
  const int unit = candidate.ofm_ublock.depth * accelerator.cores;
  candidate.ofm_block_depth = block_depth(options, accelerator, source.layer.ohwi[0], unit);
  return candidate;
}

Candidate candidate_u85(const LayerSource& source, const Accelerator& accelerator, const PackOptions& options,
                        StreamFormat format) {
  const bool sparse = format == StreamFormat::sparse || format == StreamFormat::fast_sparse;
  const int bits = ifm_bits_of(source);
  Candidate candidate;
  candidate.format = format;
  candidate.traversal = choose_traversal_u85(source.layer.block_type, source.layer.ohwi, sparse);
  candidate.ofm_ublock = choose_ofm_ublock(accelerator, candidate.traversal, source.layer.ohwi, bits, source.ofm);
  candidate.ofm_block_depth = block_depth(options, accelerator, source.layer.ohwi[0], candidate.ofm_ublock.depth);
  candidate.ifm_block_depth =
      choose_ifm_block_depth(accelerator, candidate.traversal, candidate.ofm_ublock.depth, bits, sparse);
  return candidate;
}

std::vector<StreamFormat> formats_u85(const LayerSource& source, const WeightVolume& weights, FormatChoice choice) {
  std::vector<StreamFormat> formats{StreamFormat::standard};
  if (source.layer.block_type == NpuBlockType::depthwise || choice == FormatChoice::standard) return formats;
  const bool any = choice == FormatChoice::smallest;
  const bool sparse = (any || choice == FormatChoice::sparse) && is_2_4_sparse(weights);
  if (sparse) formats.push_back(StreamFormat::sparse);
  if (any || choice == FormatChoice::fast) formats.push_back(StreamFormat::fast);
  if (sparse && any) formats.push_back(StreamFormat::fast_sparse);

  return formats;
}

}  // namespace

std::vector<Candidate> plan_layer(const LayerSource& source, const WeightVolume& weights,
                                  const Accelerator& accelerator, const PackOptions& options) {
  std::vector<Candidate> candidates;
  if (accelerator.family != NpuFamily::u85) {
    candidates.push_back(candidate_u55(source, accelerator, options));
  } else {
    for (const StreamFormat format : formats_u85(source, weights, options.format)) {
      candidates.push_back(candidate_u85(source, accelerator, options, format));
    }
  }
  for (Candidate& candidate : candidates)
    add_slices(candidate, source, accelerator, depth_step(options, source.layer.ohwi[0]));
  return candidates;
}

void add_records(PackedLayer& layer, const LayerSource& source, const Accelerator& accelerator,
                 const PackOptions& options) {
  const bool u85 = accelerator.family == NpuFamily::u85;
  layer.scaling = options.scaling;
  const bool wide = u85 && layer.ifm_dtype == DType::i16;
  layer.record_format = !u85   ? RecordFormat::bias40_scale32
                        : wide ? RecordFormat::bias48_scale15
                               : RecordFormat::bias32_scale31;
  ScaleRequest request;
  request.rule = options.scaling;
  request.ifm_dtype = layer.ifm_dtype;
  request.ifm_scale = layer.ifm_scale;
  request.ofm_scale = layer.ofm_scale;
  request.weight_scale = layer.weight_scale;
  request.fully_connected = layer.block_type == NpuBlockType::vector_product;
  request.bias_is_64_bit = source.bias_is_64_bit;
  request.rescale_for_activation = layer.rescaled_for_activation;
  request.reduced_always = wide;
  const std::vector<FixedPoint> scales = channel_scales(request, source.bias.size());
  layer.channels.resize(source.bias.size());
  for (std::size_t c = 0; c < scales.size(); ++c) layer.channels[c] = {source.bias[c], scales[c]};
  const int step = depth_step(options, layer.ohwi[0]);
  PackedRecords records = u85 ? pack_records_u85(layer.channels, step, layer.ofm_ublock.depth, layer.record_format)
                              : pack_records(layer.channels, step, accelerator.cores);
  layer.scales = std::move(records.bytes);
  for (std::size_t s = 0; s < layer.slices.size(); ++s) layer.slices[s].scales = std::move(records.slices[s]);
}

}  // namespace weightmill
