#include "compress_weights.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/parallel.h>

#include "brick_order.h"
#include "traversal.h"

namespace weightmill {
namespace {

void check(const CompressRequest& r, const Accelerator& accelerator) {
  constexpr int kLargestDilation = 8;
  if (accelerator.family == NpuFamily::u85) {
    fail(ErrorCode::unsupported, accelerator.name, "the classic compressor is for Ethos-U55 and U65");
  }
  if (r.ofm_block_depth < 1)
    fail(ErrorCode::bad_request, "ofm_block_depth", fmt::format("is {}, wanted at least 1", r.ofm_block_depth));
  if (r.ofm_depth_step < 1)
    fail(ErrorCode::bad_request, "ofm_depth_step", fmt::format("is {}, wanted at least 1", r.ofm_depth_step));
  for (const int dilation : {r.dilation_h, r.dilation_w}) {
    if (dilation < 1 || dilation > kLargestDilation) {
      fail(ErrorCode::bad_request, "dilation", fmt::format("is {}, wanted 1..{}", dilation, kLargestDilation));
    }
  }
}

BrickGeometry geometry_of(const CompressRequest& r, const Accelerator& accelerator, Traversal traversal) {
  BrickGeometry geometry;
  geometry.family = accelerator.family;
  geometry.traversal = traversal;
  geometry.ifm_bits = r.ifm_bits;
  geometry.ofm_ublock_depth = accelerator.ofm_ublocks.front().depth;
  geometry.ifm_ublock_depth = accelerator.ifm_ublock.depth;
  geometry.sub_kernel_height = accelerator.largest_sub_kernel / r.dilation_h;
  geometry.sub_kernel_width = accelerator.largest_sub_kernel / r.dilation_w;
  return geometry;
}

/// What one core gets of one brick; empty where the brick has no channel for it.
std::vector<std::uint8_t> compress_share(const CompressRequest& r, const WeightVolume& weights, BrickGeometry geometry,
                                         int first, int cores, int core) {
  const int count = std::min(weights.n_channels() - first, r.ofm_depth_step);
  if (core >= count) return {};
  geometry.ofm_block_depth = r.ofm_block_depth > core ? core_block_depth(r.ofm_block_depth, cores, core) : 0;
  const WeightVolume share = channels_of(weights, first + core, cores, (count - core - 1) / cores + 1);
  return mlw::encode(brick_order(share, geometry), r.effort);
}

/// Puts the shares of all cores together, brick after brick.
void join(CompressedWeights& result, std::vector<std::vector<std::uint8_t>> shares, std::size_t n_cores,
          double n_nominal) {
  result.offsets.push_back(0);
  for (std::size_t first = 0; first < shares.size(); first += n_cores) {
    std::vector<std::uint8_t>& stream = result.values.emplace_back(std::move(shares[first]));
    std::vector<std::uint64_t>& offsets = result.substream_offsets.emplace_back(1, std::uint64_t{0});
    offsets.push_back(stream.size());
    for (std::size_t core = 1; core < n_cores; ++core) {
      stream.insert(stream.end(), shares[first + core].begin(), shares[first + core].end());
      offsets.push_back(stream.size());
    }
    result.offsets.push_back(result.offsets.back() + stream.size());
    result.scales.push_back(static_cast<double>(stream.size()) / n_nominal);
  }
}

std::uint64_t storage_size(const CompressedWeights& compressed, bool double_buffer) {
  if (!double_buffer || compressed.values.size() <= 2) return compressed.offsets.back();
  std::size_t longest = 0;
  for (const auto& stream : compressed.values) longest = std::max(longest, stream.size());
  return 2 * longest;
}

/// Up to numpy's block of 128 values: eight running sums, which its loop keeps in registers.
double numpy_block_sum(std::span<const double> values) {
  const std::size_t n = values.size();
  if (n < 8) return std::accumulate(values.begin(), values.end(), 0.0);
  std::array<double, 8> r{};
  const std::size_t n_whole = n - n % 8;
  for (std::size_t i = 0; i < n_whole; ++i) r[i % 8] += values[i];
  double sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  for (std::size_t i = n_whole; i < n; ++i) sum += values[i];
  return sum;
}

double numpy_sum(std::span<const double> values) {
  constexpr std::size_t kNumpyBlock = 128;
  const std::size_t n = values.size();
  if (n <= kNumpyBlock) return numpy_block_sum(values);
  const std::size_t half = n / 2 - n / 2 % 8;
  return numpy_sum(values.first(half)) + numpy_sum(values.subspan(half));
}

}  // namespace

double numpy_mean(std::span<const double> values) {
  return values.empty() ? 0 : numpy_sum(values) / static_cast<double>(values.size());
}

CompressedWeights compress_weights(const CompressRequest& request, const Accelerator& accelerator) {
  check(request, accelerator);
  const WeightVolume weights = request.flip ? flipped(request.weights) : request.weights;
  const auto [n_o, height, width, n_i] = weights.ohwi;
  CompressedWeights result;
  result.traversal = choose_traversal(request.block_type, weights.ohwi, request.ifm_bits);
  result.brick_size = {height, width, n_i, std::min(n_o, request.ofm_depth_step)};
  const BrickGeometry geometry = geometry_of(request, accelerator, result.traversal);
  const auto n_cores = static_cast<std::size_t>(std::min(accelerator.cores, n_o));
  const auto n_bricks = static_cast<std::size_t>((n_o - 1) / request.ofm_depth_step + 1);
  std::vector<std::vector<std::uint8_t>> shares(n_bricks * n_cores);
  parallel_for(shares.size(), resolve_jobs(request.jobs), [&](std::size_t k) {
    const int first = static_cast<int>(k / n_cores) * request.ofm_depth_step;
    shares[k] = compress_share(request, weights, geometry, first, accelerator.cores, static_cast<int>(k % n_cores));
  });
  double n_nominal = 1;
  for (const int extent : result.brick_size) n_nominal *= extent;
  join(result, std::move(shares), n_cores, n_nominal);
  result.worst_scale = *std::ranges::max_element(result.scales);
  result.mean_scale = numpy_mean(result.scales);
  result.storage_shape[3] = storage_size(result, request.double_buffer);
  return result;
}

CompressedWeights WeightCache::compress(std::uint64_t equivalence_id, const CompressRequest& r,
                                        const Accelerator& accelerator) {
  const Key key{equivalence_id,   r.block_type, std::min(r.ofm_block_depth, r.weights.n_channels()),
                r.ofm_depth_step, r.ifm_bits,   r.dilation_h,
                r.dilation_w,     r.flip,       r.effort};
  const auto found = entries_.find(key);
  if (found == entries_.end()) return entries_.emplace(key, compress_weights(r, accelerator)).first->second;
  ++n_hits_;
  CompressedWeights result = found->second;
  result.storage_shape[3] = storage_size(result, r.double_buffer);
  return result;
}

}  // namespace weightmill
