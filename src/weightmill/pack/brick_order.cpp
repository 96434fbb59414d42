#include "brick_order.h"

#include <algorithm>
#include <cassert>
#include <string_view>

#include <fmt/format.h>

#include <weightmill/base/bits.h>
#include <weightmill/base/error.h>

#include "order_emitter.h"
#include "order_u55.h"
#include "order_u85.h"

namespace weightmill {

U85Blocks::U85Blocks(const BrickGeometry& g) noexcept {
  const bool part_kernel = g.traversal == Traversal::part_kernel_first;
  const bool dense16 = g.ifm_bits == 16 && !g.sparse;
  depthwise = g.traversal == Traversal::depthwise;
  kernel_rounding = depthwise ? 10 : !part_kernel ? 1 : g.ifm_bits == 16 || g.sparse ? 10 : 5;
  ifm_ublock_depth = depthwise ? 1 : part_kernel && dense16 ? 8 : g.ifm_block_depth;
  row = depthwise ? 1 : g.sparse ? 16 : 8;
  const bool depth_first = g.traversal == Traversal::depth_first;
  stride_y = depth_first ? 1 : g.stride_y;
  stride_x = depth_first ? 1 : g.stride_x;
  depthwise_padding = g.ifm_bits != 16 && g.macs_per_cycle <= 256 ? 0 : g.macs_per_cycle <= 512 ? 2 : 6;
}

namespace {

/// Far above any layer, far below what would not fit the memory of a host.
constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 30;

void check_positive(std::string_view name, std::int64_t value) {
  if (value < 1) fail(ErrorCode::bad_request, name, fmt::format("is {}, wanted at least 1", value));
}

void check_range(std::string_view name, int value, int low, int high) {
  if (value < low || value > high) {
    fail(ErrorCode::bad_request, name, fmt::format("is {}, wanted {}..{}", value, low, high));
  }
}

void check_multiple(std::string_view name, int value, int unit) {
  constexpr int kLargestDepth = 1 << 16;
  check_range(name, value, 1, kLargestDepth);
  if (value % unit != 0) fail(ErrorCode::bad_request, name, fmt::format("is {}, wanted a multiple of {}", value, unit));
}

void check_u85(const BrickGeometry& g) {
  constexpr int kMostCores = 16;
  check_positive("stride y", g.stride_y);
  check_positive("stride x", g.stride_x);
  check_range("cores", g.cores, 1, kMostCores);
  check_range("core", g.core, 0, g.cores - 1);
  check_multiple("ofm_ublock_depth", g.ofm_ublock_depth, U85Blocks::kDealtChannels * g.cores);
  check_multiple("ifm_block_depth", g.ifm_block_depth, U85Blocks(g).row);
}

void check(const std::array<int, 4>& ohwi, const BrickGeometry& g) {
  constexpr std::array<std::string_view, 4> kNames{"output depth", "kernel height", "kernel width", "input depth"};
  for (std::size_t axis = 0; axis < 4; ++axis) check_positive(kNames[axis], ohwi[axis]);
  check_positive("ofm_block_depth", g.ofm_block_depth);
  check_positive("ofm_ublock_depth", g.ofm_ublock_depth);
  check_positive("sub-kernel height", g.sub_kernel_height);
  check_positive("sub-kernel width", g.sub_kernel_width);
  if (g.family == NpuFamily::u85) {
    check_u85(g);
  } else {
    check_positive("ifm_ublock_depth", g.ifm_ublock_depth);
  }
}

/// A count that stays at the limit once it is beyond it.
class Count {
 public:
  Count(std::uint64_t value) noexcept : value_(std::min(value, kMostEntries + 1)) {}  // NOLINT: meant to convert
  friend Count operator*(Count a, Count b) noexcept { return a.value_ * b.value_; }
  friend Count operator+(Count a, Count b) noexcept { return a.value_ + b.value_; }
  std::uint64_t checked() const {
    if (value_ > kMostEntries) {
      fail(ErrorCode::unsupported, "weights",
           "would take more than 2^30 entries in order; cut them by output channels");
    }
    return value_;
  }

 private:
  std::uint64_t value_;
};

std::uint64_t unsigned_of(int value) { return static_cast<std::uint64_t>(value); }

/// How many steps of `step` cover `extent`.
std::uint64_t n_steps(int extent, int step) { return ceil_div(unsigned_of(extent), unsigned_of(step)); }

/// How many ofm ublocks the blocks of `geometry` make of all output channels.
Count n_ofm_ublocks(int n_channels, const BrickGeometry& g) {
  const int n_full = n_channels / g.ofm_block_depth, rest = n_channels % g.ofm_block_depth;
  return Count(unsigned_of(n_full)) * Count(n_steps(g.ofm_block_depth, g.ofm_ublock_depth)) +
         Count(n_steps(rest, g.ofm_ublock_depth));
}

/// Sum over the parts that a kernel is cut into: at most four kinds of them, whole or cut off at the bottom or right.
template <class CountOf>
Count sum_over_sub_kernels(const std::array<int, 4>& ohwi, const BrickGeometry& g, CountOf&& count_of) {
  Count sum = 0;
  for (const bool last_y : {false, true}) {
    for (const bool last_x : {false, true}) {
      const int height = last_y ? ohwi[1] % g.sub_kernel_height : std::min(g.sub_kernel_height, ohwi[1]);
      const int width = last_x ? ohwi[2] % g.sub_kernel_width : std::min(g.sub_kernel_width, ohwi[2]);
      const int n_y = last_y ? (height > 0 ? 1 : 0) : ohwi[1] / g.sub_kernel_height;
      const int n_x = last_x ? (width > 0 ? 1 : 0) : ohwi[2] / g.sub_kernel_width;
      if (n_y > 0 && n_x > 0) sum = sum + Count(unsigned_of(n_y)) * Count(unsigned_of(n_x)) * count_of(height, width);
    }
  }
  return sum;
}

Count count_u55(const std::array<int, 4>& ohwi, const BrickGeometry& g) {
  const U55Blocks blocks(g);
  const Count lanes = unsigned_of(g.ofm_ublock_depth);
  Count depth = 1;  // input channels written for each output channel and kernel element
  if (blocks.part_kernel) {
    const int n_full = ohwi[3] / blocks.ifm_block_depth, rest = ohwi[3] % blocks.ifm_block_depth;
    depth = (Count(unsigned_of(n_full)) * n_steps(blocks.ifm_block_depth, g.ifm_ublock_depth) +
             n_steps(rest, g.ifm_ublock_depth)) *
            unsigned_of(g.ifm_ublock_depth);
  } else if (!blocks.depthwise) {
    depth = Count(n_steps(ohwi[3], blocks.ifm_block_depth)) * n_steps(blocks.ifm_block_depth, g.ifm_ublock_depth) *
            unsigned_of(g.ifm_ublock_depth);
  }
  const Count elements = sum_over_sub_kernels(ohwi, g, [&](int height, int width) {
    return Count(ceil_to(unsigned_of(height) * unsigned_of(width), std::uint64_t{blocks.kernel_rounding}));
  });
  return n_ofm_ublocks(ohwi[0], g) * lanes * depth * elements;
}

/// Entries that one ofm ublock and one round of the kernel take in one core's stream.
Count count_u85_round(const BrickGeometry& g, const U85Blocks& blocks, int height, int width) {
  const Count lanes = unsigned_of(g.ofm_ublock_depth / g.cores);
  const Count depth = Count(n_steps(blocks.ifm_ublock_depth, blocks.row)) * unsigned_of(blocks.row);
  const std::uint64_t n = unsigned_of(height) * unsigned_of(width);
  const auto rounding = unsigned_of(blocks.kernel_rounding);
  const std::uint64_t n_left = ceil_to(n, rounding) - n;
  const auto padding_of = [&](std::uint64_t n_padded) {
    return Count(n_padded * unsigned_of(blocks.ifm_ublock_depth) * unsigned_of(g.ofm_ublock_depth) /
                 unsigned_of(g.cores));
  };
  const std::uint64_t tail = blocks.depthwise ? unsigned_of(blocks.depthwise_padding) : 0;
  Count count = Count(n) * lanes * depth + Count(n / rounding) * padding_of(tail);
  if (n_left > 0) count = count + padding_of(n_left + tail);
  return count;
}

Count count_u85(const std::array<int, 4>& ohwi, const BrickGeometry& g) {
  const U85Blocks blocks(g);
  Count rounds = 1;
  if (!blocks.depthwise) {
    const int n_full = ohwi[3] / g.ifm_block_depth, rest = ohwi[3] % g.ifm_block_depth;
    rounds = Count(unsigned_of(n_full)) * n_steps(g.ifm_block_depth, blocks.ifm_ublock_depth) +
             n_steps(rest, blocks.ifm_ublock_depth);
  }
  const Count round = sum_over_sub_kernels(ohwi, g, [&](int h, int w) { return count_u85_round(g, blocks, h, w); });
  return n_ofm_ublocks(ohwi[0], g) * rounds * round;
}

/// Depthwise orders skip input channels, so the volume may be larger than its order.
void check_indices_fit(const std::array<int, 4>& ohwi) {
  Count n_weights = 1;
  for (const int extent : ohwi) n_weights = n_weights * unsigned_of(extent);
  n_weights.checked();
}

template <class Source>
void walk(OrderEmitter<Source>& out, const std::array<int, 4>& ohwi, const BrickGeometry& g) noexcept {
  if (g.family == NpuFamily::u85) {
    U85Order<Source>(out, ohwi, g).walk();
  } else {
    U55Order<Source>(out, ohwi, g).walk();
  }
}

/// Fills `out` with core after core's order, interleaved in blocks of `block` entries.
template <class Value, class OrderOf>
std::vector<Value> interleave(const BrickGeometry& geometry, std::uint64_t count, OrderOf&& order_of) {
  const U85Blocks blocks(geometry);
  const auto cores = unsigned_of(geometry.cores);
  const std::uint64_t block = unsigned_of(geometry.ofm_ublock_depth) * unsigned_of(blocks.ifm_ublock_depth) *
                              unsigned_of(blocks.kernel_rounding) / cores;
  std::vector<Value> result(count);
  BrickGeometry core = geometry;
  for (core.core = 0; core.core < geometry.cores; ++core.core) {
    const std::vector<Value> order = order_of(core);
    for (std::uint64_t from = 0; from < order.size(); from += block) {
      const std::uint64_t n = std::min<std::uint64_t>(block, order.size() - from);
      const std::uint64_t to = from * cores + unsigned_of(core.core) * block;
      assert(to + n <= count);
      std::copy_n(order.begin() + static_cast<std::ptrdiff_t>(from), n,
                  result.begin() + static_cast<std::ptrdiff_t>(to));
    }
  }
  return result;
}

void check_fast(const std::array<int, 4>& ohwi, BrickGeometry g) {
  g.core = 0;
  check(ohwi, g);
  if (g.family != NpuFamily::u85) fail(ErrorCode::unsupported, "fast format", "only Ethos-U85 has it");
  if (g.traversal == Traversal::depthwise) fail(ErrorCode::unsupported, "fast format", "not for depthwise weights");
}

}  // namespace

std::uint64_t ordered_count(const std::array<int, 4>& ohwi, const BrickGeometry& geometry) {
  check(ohwi, geometry);
  return (geometry.family == NpuFamily::u85 ? count_u85(ohwi, geometry) : count_u55(ohwi, geometry)).checked();
}

void brick_order(const WeightVolume& volume, const BrickGeometry& geometry, std::vector<std::int16_t>& out) {
  out.resize(ordered_count(volume.ohwi, geometry));
  std::visit(
      [&]<class T>(const std::span<const T>& values) {
        OrderEmitter<WeightSource<T>> emitter({values.data(), volume.zero_point}, volume.ohwi, volume.stride,
                                              volume.origin, out.data());
        walk(emitter, volume.ohwi, geometry);
        assert(emitter.end() == out.data() + out.size());
      },
      volume.values);
}

std::vector<std::int16_t> brick_order(const WeightVolume& volume, const BrickGeometry& geometry) {
  std::vector<std::int16_t> out;
  brick_order(volume, geometry, out);
  return out;
}

std::vector<std::int32_t> brick_indices(const std::array<int, 4>& ohwi, const BrickGeometry& geometry) {
  std::vector<std::int32_t> out(ordered_count(ohwi, geometry));
  check_indices_fit(ohwi);
  const std::ptrdiff_t i = ohwi[3], wi = i * ohwi[2], hwi = wi * ohwi[1];
  OrderEmitter<IndexSource> emitter({}, ohwi, {hwi, wi, i, 1}, 0, out.data());
  walk(emitter, ohwi, geometry);
  assert(emitter.end() == out.data() + out.size());
  return out;
}

std::uint64_t fast_ordered_count(const std::array<int, 4>& ohwi, const BrickGeometry& geometry) {
  check_fast(ohwi, geometry);
  Count sum = 0;
  BrickGeometry core = geometry;
  for (core.core = 0; core.core < geometry.cores; ++core.core) sum = sum + ordered_count(ohwi, core);
  return sum.checked();
}

std::vector<std::int16_t> fast_order(const WeightVolume& volume, const BrickGeometry& geometry) {
  const std::uint64_t count = fast_ordered_count(volume.ohwi, geometry);
  return interleave<std::int16_t>(geometry, count,
                                  [&](const BrickGeometry& core) { return brick_order(volume, core); });
}

std::vector<std::int32_t> fast_indices(const std::array<int, 4>& ohwi, const BrickGeometry& geometry) {
  const std::uint64_t count = fast_ordered_count(ohwi, geometry);
  return interleave<std::int32_t>(geometry, count,
                                  [&](const BrickGeometry& core) { return brick_indices(ohwi, core); });
}

}  // namespace weightmill
