#include "pack.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/parallel.h>

#include "brick_order.h"
#include "compress_weights.h"
#include "layer_plan.h"
#include "layer_source.h"

namespace weightmill {
namespace {

using Bytes = std::vector<std::uint8_t>;

bool is_fast(StreamFormat format) { return format == StreamFormat::fast || format == StreamFormat::fast_sparse; }

/// A layer on its way: planned, then coded in all its candidate ways, then finished with one of them.
struct Draft {
  LayerSource source;
  LayerWeights weights;
  std::vector<Candidate> candidates;
  std::vector<std::vector<std::optional<Bytes>>> coded;  ///< [candidate][stream]; nothing: the format cannot hold it
};

/// One stream to code.
struct Job {
  Draft* draft = nullptr;
  std::size_t candidate = 0;
  std::size_t stream = 0;
  const PackedStream* plan = nullptr;
};

void count_weights(Candidate& candidate, const WeightVolume& weights) {
  for (DepthSlice& slice : candidate.slices) {
    for (PackedStream& stream : slice.streams) {
      std::array<int, 4> ohwi = weights.ohwi;
      const int beyond = slice.first_channel + slice.n_channels - stream.first_channel;
      ohwi[0] = (beyond - 1) / stream.channel_step + 1;
      stream.n_ordered =
          is_fast(candidate.format) ? fast_ordered_count(ohwi, stream.geometry) : ordered_count(ohwi, stream.geometry);
    }
  }
}

/// Equal weights that are laid out in the same way, found by what their streams depend on and then byte by byte.
class EqualWeights {
 public:
  /// The earlier layer with the same streams, or -1 after `layer` was noted as their first.
  int find_or_add(const Draft& draft, int layer) {
    const Tensor* tensor = draft.source.weights;
    std::vector<Entry>& entries = entries_[signature(draft)];
    for (const Entry& entry : entries) {
      if (same_bytes(entry.tensor->data, tensor->data)) return entry.layer;
    }
    entries.push_back({layer, tensor});
    return -1;
  }

 private:
  struct Entry {
    int layer;
    const Tensor* tensor;
  };

  static bool same_bytes(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
    return a.size() == b.size() && (a.data() == b.data() || std::memcmp(a.data(), b.data(), a.size()) == 0);
  }

  static std::string signature(const Draft& draft) {
    const PackedLayer& l = draft.source.layer;
    const std::span<const std::uint8_t> data = draft.source.weights->data;
    const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
    std::string key =
        fmt::format("{} {} {} {} {} {} {}", std::hash<std::string_view>{}(text), data.size(), name_of(l.weights_dtype),
                    fmt::join(l.ohwi, "x"), fmt::join(l.zero_point, ","), l.flipped, draft.source.depthwise_layout);
    for (const Candidate& c : draft.candidates) {
      const BrickGeometry& g = c.slices.front().streams.front().geometry;
      key += fmt::format(" | {} {} {} {} {} {} {}/{} {}x{} {}", name_of(c.format), name_of(c.traversal), g.ifm_bits,
                         g.ofm_block_depth, g.ifm_block_depth, g.ofm_ublock_depth, g.stride_y, g.stride_x,
                         g.sub_kernel_height, g.sub_kernel_width, c.ofm_block_depth);
    }
    return key;
  }

  std::map<std::string, std::vector<Entry>> entries_;
};

/// Walks through the model batch by batch, so that few pages and buffers are alive at a time.
class Packer {
 public:
  Packer(const Model& model, const Accelerator& accelerator, const PackOptions& options)
      : model_(model), accelerator_(accelerator), options_(options) {}

  Packed run();

 private:
  void plan(LayerSource source);
  void code_batch();
  std::vector<Job> jobs_of_batch();
  void code(const Job& job) const;
  void finish(Draft& draft);
  void use_candidate(PackedLayer& layer, Draft& draft) const;
  void use_earlier(PackedLayer& layer, const PackedLayer& earlier) const;
  std::size_t choose(const Draft& draft) const;
  void give_back_pages(const Tensor& tensor) const;

  const Model& model_;
  const Accelerator& accelerator_;
  const PackOptions& options_;
  std::vector<Draft> batch_;
  std::uint64_t batch_weights_ = 0;
  EqualWeights equal_weights_;
  std::size_t n_found_ = 0;
  Packed packed_;
};

Packed Packer::run() {
  packed_.accelerator = accelerator_;
  packed_.effort = mlw::name_of(options_.effort);
  packed_.forms = mlw::name_of(options_.forms);
  packed_.scaling = options_.scaling;
  std::vector<FoundLayer> found = find_layers(model_, options_.scaling);
  n_found_ = found.size();
  for (FoundLayer& layer : found) {
    if (auto* obstacle = std::get_if<NotPacked>(&layer)) {
      packed_.not_packed.push_back(std::move(*obstacle));
    } else {
      plan(std::move(std::get<LayerSource>(layer)));
    }
  }
  code_batch();
  if (options_.progress) options_.progress("packing", n_found_, n_found_);
  return std::move(packed_);
}

/// Puts a layer into the batch, or lists it where an order would be too long or a scale does not fit its record.
void Packer::plan(LayerSource source) {
  constexpr std::uint64_t kBatchWeights = std::uint64_t{8} << 20;
  Draft draft{std::move(source), {}, {}, {}};
  draft.weights = weights_of(draft.source);
  PackedLayer& layer = draft.source.layer;
  draft.candidates = plan_layer(draft.source, draft.weights.volume, accelerator_, options_);
  try {
    for (Candidate& candidate : draft.candidates) count_weights(candidate, draft.weights.volume);
    layer.slices = draft.candidates.front().slices;
    add_records(layer, draft.source, accelerator_, options_);
  } catch (const Error& error) {
    packed_.not_packed.push_back({layer.subgraph, layer.node, layer.op_name, layer.weights_name, error.what()});
    return;
  }
  layer.n_source_weights = draft.weights.volume.n_weights();
  layer.same_as = equal_weights_.find_or_add(draft, static_cast<int>(packed_.layers.size() + batch_.size()));
  batch_weights_ += layer.n_source_weights;
  batch_.push_back(std::move(draft));
  if (batch_weights_ >= kBatchWeights) code_batch();
}

/// Longest first, so that threads end together.
std::vector<Job> Packer::jobs_of_batch() {
  std::vector<Job> jobs;
  for (Draft& draft : batch_) {
    if (draft.source.layer.same_as >= 0) continue;
    draft.coded.resize(draft.candidates.size());
    for (std::size_t c = 0; c < draft.candidates.size(); ++c) {
      for (const DepthSlice& slice : draft.candidates[c].slices) {
        for (const PackedStream& stream : slice.streams) {
          jobs.push_back({&draft, c, draft.coded[c].size(), &stream});
          draft.coded[c].emplace_back();
        }
      }
    }
  }
  std::ranges::stable_sort(jobs, std::greater<>{}, [](const Job& job) { return job.plan->n_ordered; });
  return jobs;
}

int n_channels_of(const PackedStream& stream, const std::vector<DepthSlice>& slices) {
  const auto slice = std::ranges::find_if(slices, [&](const DepthSlice& s) {
    return s.first_channel <= stream.first_channel && stream.first_channel < s.first_channel + s.n_channels;
  });
  return (slice->first_channel + slice->n_channels - stream.first_channel - 1) / stream.channel_step + 1;
}

void Packer::code(const Job& job) const {
  const Candidate& candidate = job.draft->candidates[job.candidate];
  const PackedStream& plan = *job.plan;
  const WeightVolume share = channels_of(job.draft->weights.volume, plan.first_channel, plan.channel_step,
                                         n_channels_of(plan, candidate.slices));
  std::optional<Bytes>& coded = job.draft->coded[job.candidate][job.stream];
  if (is_fast(candidate.format)) {
    coded = mlw::encode_fast(fast_order(share, plan.geometry), candidate.format == StreamFormat::fast_sparse);
  } else {
    coded = mlw::encode(brick_order(share, plan.geometry), options_.effort, options_.forms);
  }
}

void Packer::code_batch() {
  const std::vector<Job> jobs = jobs_of_batch();
  parallel_for(jobs.size(), resolve_jobs(options_.jobs), [&](std::size_t k) { code(jobs[k]); });
  for (Draft& draft : batch_) finish(draft);
  batch_.clear();
  batch_weights_ = 0;
}

/// The smallest of the ways that could be coded; where the user wants a format, the last, which is that format.
std::size_t Packer::choose(const Draft& draft) const {
  std::size_t best = 0;
  std::uint64_t best_size = 0;
  for (std::size_t c = 0; c < draft.coded.size(); ++c) {
    const auto& streams = draft.coded[c];
    if (std::ranges::any_of(streams, [](const auto& stream) { return !stream; })) continue;
    const auto size = std::accumulate(streams.begin(), streams.end(), std::uint64_t{0},
                                      [](std::uint64_t sum, const auto& s) { return sum + s->size(); });
    if (c > 0 && options_.format == FormatChoice::smallest && size >= best_size) continue;
    best = c;
    best_size = size;
  }
  return best;
}

void Packer::use_candidate(PackedLayer& layer, Draft& draft) const {
  const std::size_t chosen = choose(draft);
  Candidate& candidate = draft.candidates[chosen];
  layer.format = candidate.format;
  layer.traversal = candidate.traversal;
  layer.ofm_ublock = candidate.ofm_ublock;
  layer.ofm_block_depth = candidate.ofm_block_depth;
  layer.ifm_block_depth = candidate.ifm_block_depth;
  layer.slices = std::move(candidate.slices);
  auto coded = draft.coded[chosen].begin();
  for (DepthSlice& slice : layer.slices) {
    for (PackedStream& stream : slice.streams) {
      Bytes bytes = *std::move(*coded++);
      stream.offset = layer.weights.size();
      stream.size_bytes = bytes.size();
      if (layer.weights.empty()) {
        layer.weights = std::move(bytes);
      } else {
        layer.weights.insert(layer.weights.end(), bytes.begin(), bytes.end());
      }
    }
  }
  layer.weights_size_bytes = layer.weights.size();
}

void Packer::use_earlier(PackedLayer& layer, const PackedLayer& earlier) const {
  layer.format = earlier.format;
  layer.traversal = earlier.traversal;
  layer.ofm_ublock = earlier.ofm_ublock;
  layer.ofm_block_depth = earlier.ofm_block_depth;
  layer.ifm_block_depth = earlier.ifm_block_depth;
  layer.slices = earlier.slices;
  layer.weights_size_bytes = earlier.weights_size_bytes;
}

/// Compression scales and the size of a double buffer.
void add_sizes(PackedLayer& layer) {
  const auto [n_o, height, width, n_i] = layer.ohwi;
  layer.ofm_depth_step = layer.slices.front().n_channels;
  const double n_nominal = static_cast<double>(height) * width * n_i * layer.ofm_depth_step;
  std::vector<double> scales;
  std::uint64_t longest = 0;
  for (DepthSlice& slice : layer.slices) {
    std::uint64_t size = 0;
    for (const PackedStream& stream : slice.streams) size += stream.size_bytes;
    slice.compression_scale = static_cast<double>(size) / n_nominal;
    scales.push_back(slice.compression_scale);
    longest = std::max(longest, size);
  }
  layer.double_buffer_size_bytes = layer.slices.size() > 2 ? 2 * longest : layer.weights_size_bytes;
  layer.worst_compression_scale = *std::ranges::max_element(scales);
  layer.mean_compression_scale = numpy_mean(scales);
}

void Packer::finish(Draft& draft) {
  PackedLayer layer = std::move(draft.source.layer);
  draft.weights = {};
  if (layer.same_as >= 0) {
    use_earlier(layer, packed_.layers[static_cast<std::size_t>(layer.same_as)]);
  } else {
    use_candidate(layer, draft);
  }
  draft.coded.clear();
  add_records(layer, draft.source, accelerator_, options_);
  add_sizes(layer);
  give_back_pages(*draft.source.weights);
  packed_.layers.push_back(std::move(layer));
  if (options_.progress) options_.progress("packing", packed_.layers.size() + packed_.not_packed.size(), n_found_);
}

void Packer::give_back_pages(const Tensor& tensor) const {
  if (model_.file == nullptr || tensor.data.empty()) return;
  const std::span<const std::uint8_t> file = model_.file->bytes();
  const std::less<const std::uint8_t*> before;
  const std::uint8_t* end = file.data() + file.size();
  if (before(tensor.data.data(), file.data()) || !before(tensor.data.data(), end)) return;
  model_.file->release(static_cast<std::size_t>(tensor.data.data() - file.data()), tensor.data.size());
}

}  // namespace

Packed pack(const Model& model, const Accelerator& accelerator, const PackOptions& options) {
  const bool needs_u85 = options.format == FormatChoice::fast || options.format == FormatChoice::sparse;
  if (needs_u85 && accelerator.family != NpuFamily::u85) {
    fail(ErrorCode::bad_request, "format", fmt::format("{} has standard streams only: U85 has others", accelerator.name));
  }
  return Packer(model, accelerator, options).run();
}

}  // namespace weightmill
