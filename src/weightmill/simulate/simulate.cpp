#include "simulate.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/bits.h>
#include <weightmill/base/error.h>
#include <weightmill/base/parallel.h>
#include <weightmill/kernels/convolve.h>
#include <weightmill/kernels/rounding_rules.h>

#include "check_layer.h"
#include "padded_image.h"
#include "weight_layout.h"

namespace weightmill {

struct Simulator::Prepared {
  IntegerLayer layer;
  WeightLayout layout;
  std::vector<std::int64_t> bias;  ///< C; with the input's zero-point term
  bool wide = false;               ///< some input could make an accumulator that int32 does not hold
  bool split = false;              ///< some channel has the high intrinsic shift

  bool halved() const { return !layer.intrinsic_shift.empty(); }
};

namespace {

/// bias - zero_point * sum(weights): what lets the kernels multiply codes as they are.
std::vector<std::int64_t> bias_for_codes(const IntegerLayer& layer) {
  const std::size_t n_channels = channels_of(layer);
  std::vector<std::int64_t> bias = layer.bias;
  bias.resize(n_channels);
  if (layer.bias_form == BiasForm::folded) return bias;
  for (std::size_t row = 0; row < layer.weight.size(); row += n_channels) {
    for (std::size_t c = 0; c < n_channels; ++c) bias[c] -= layer.input_zero_point * layer.weight[row + c];
  }
  return bias;
}

/// The shape of an input with a leading batch and three spatial axes, and how the output's shape follows.
struct Resolved {
  std::int64_t batch = 1;
  std::array<std::int64_t, 3> in{1, 1, 1};
  bool dense_view = false;  ///< the input has another rank than the layer: all leading axes went into width
};

bool is_dense(const IntegerLayer& layer) {
  const ConvGeometry& g = layer.geometry;
  const auto all = [](std::span<const std::int64_t> values, std::int64_t v) {
    return std::ranges::all_of(values, [v](std::int64_t x) { return x == v; });
  };
  return all(std::span(layer.weight_shape).first(layer.weight_shape.size() - 3), 1) && all(g.stride, 1) &&
         all(g.pad_before, 0) && all(g.pad_after, 0);
}

void check_input(const IntegerLayer& layer, const ActivationView& input) {
  if (input.dtype != layer.input_dtype) {
    fail(ErrorCode::bad_request, layer.name,
         fmt::format("the input is {}; the layer takes {}", name_of(input.dtype), name_of(layer.input_dtype)));
  }
  const Shape& w = layer.weight_shape;
  const std::int64_t channels = w[w.size() - 3] * w[w.size() - 2];
  if (input.shape.empty() || input.shape.back() != channels) {
    fail(ErrorCode::bad_request, layer.name,
         fmt::format("the input's shape is {}; its last axis must be {} channels", to_string(input.shape), channels));
  }
  const bool whole = std::ranges::all_of(input.shape, [](std::int64_t e) { return e > 0; }) &&
                     size_bytes(input.shape, input.dtype, layer.name) == input.bytes.size();
  if (!whole) {
    fail(ErrorCode::bad_request, layer.name,
         fmt::format("the input's shape {} and its {} bytes do not go together", to_string(input.shape),
                     input.bytes.size()));
  }
}

Resolved resolve(const IntegerLayer& layer, const ActivationView& input) {
  check_input(layer, input);
  const std::size_t n_axes = layer.weight_shape.size() - 3;
  Resolved resolved;
  if (input.shape.size() == n_axes + 2) {
    resolved.batch = input.shape[0];
    for (std::size_t i = 0; i < n_axes; ++i) resolved.in[3 - n_axes + i] = input.shape[1 + i];
    return resolved;
  }
  if (!is_dense(layer)) {
    fail(ErrorCode::bad_request, layer.name,
         fmt::format("the input's shape is {}; wanted {} axes: batch, {} spatial ones, channels",
                     to_string(input.shape), n_axes + 2, n_axes));
  }
  resolved.dense_view = true;
  for (std::size_t i = 0; i + 1 < input.shape.size(); ++i) resolved.in[2] *= input.shape[i];
  return resolved;
}

Shape output_shape(const IntegerLayer& layer, const ActivationView& input, const Resolved& resolved,
                   const ImagePlan& plan) {
  const std::size_t n_axes = layer.weight_shape.size() - 3;
  Shape shape = input.shape;
  if (!resolved.dense_view) {
    for (std::size_t i = 0; i < n_axes; ++i) shape[1 + i] = plan.axis[3 - n_axes + i].out;
  }
  shape.back() = static_cast<std::int64_t>(channels_of(layer));
  return shape;
}

/// Accumulators of some neighbouring output pixels, and what they become. Reused from tile to tile.
struct Tile {
  std::vector<std::int32_t> narrow;
  std::vector<std::int64_t> wide, low;
  std::vector<std::int32_t> codes;
};

/// A stretch of one output row: pixels [first, first + count) of row (depth, height).
struct TilePlace {
  std::int64_t depth, height, first, count;
};

/// Padded images of one input image: one, or the two halves of the split product.
struct Passes {
  std::vector<std::int16_t> image;
  std::vector<std::int16_t> low;
};

/// Runs the layer over one image.
class ImageRun {
 public:
  ImageRun(const IntegerLayer& layer, const WeightLayout& layout, std::span<const std::int64_t> bias,
           const ImagePlan& plan, const Passes& passes)
      : layer_(layer),
        layout_(layout),
        bias_(bias),
        plan_(plan),
        passes_(passes),
        offsets_(run_offsets(layout, plan)) {}

  RequantCounts narrow_tile(const TilePlace& place, Tile& tile) const {
    const std::size_t n = n_values(place);
    tile.narrow.resize(n), tile.codes.resize(n);
    for (std::size_t i = 0; i < n; i += bias_.size()) {
      for (std::size_t c = 0; c < bias_.size(); ++c) tile.narrow[i + c] = static_cast<std::int32_t>(bias_[c]);
    }
    accumulate(passes_.image, place, 0, layout_.runs.size(), tile.narrow);
    return requantize(layer_.rounding, lanes(), layer_.output, std::span<const std::int32_t>(tile.narrow), tile.codes);
  }

  RequantCounts wide_tile(const TilePlace& place, Tile& tile) const {
    const std::size_t n = n_values(place);
    tile.codes.resize(n);
    accumulate_wide(passes_.image, place, tile.narrow, tile.wide);
    if (!passes_.low.empty()) {
      accumulate_wide(passes_.low, place, tile.narrow, tile.low);
      join_halves(tile);
    }
    for (std::size_t i = 0; i < n; i += bias_.size()) {
      for (std::size_t c = 0; c < bias_.size(); ++c) tile.wide[i + c] += bias_[c];
    }
    return requantize_wide(tile);
  }

 private:
  std::size_t n_values(const TilePlace& place) const { return static_cast<std::size_t>(place.count) * bias_.size(); }
  RequantLanes lanes() const {
    return {layer_.multiplier, layer_.shift, layer_.gain, layer_.wide_gain, layer_.offset, layer_.last};
  }

  /// Adds runs [first_run, first_run + n_runs) to `acc` [pixels, C], modulo 2^32.
  void accumulate(std::span<const std::int16_t> image, const TilePlace& place, std::size_t first_run,
                  std::size_t n_runs, std::span<std::int32_t> acc) const {
    const auto& [d, h, w] = plan_.axis;
    const auto row = static_cast<std::size_t>(place.depth * d.stride * h.padded + place.height * h.stride);
    const std::size_t step = static_cast<std::size_t>(w.stride) * plan_.padded_channels();
    image = image.subspan(row * plan_.row_elements() + static_cast<std::size_t>(place.first) * step);
    const TapRuns taps{static_cast<std::size_t>(place.count), step, std::span(offsets_).subspan(first_run, n_runs),
                       layout_.run_length};
    if (layout_.depthwise) {
      const auto weights = std::span(layout_.groups[0]).subspan(first_run * layout_.run_length);
      return accumulate_depthwise(taps, image, weights, acc);
    }
    const std::size_t n_channels = layout_.channels_of_group;
    const std::size_t first_weight = first_run * packed_run_size(layout_.run_length, n_channels);
    for (std::size_t g = 0; g < layout_.groups.size(); ++g) {
      accumulate_panels(taps, image.subspan(g * layout_.inputs_of_group),
                        std::span(layout_.groups[g]).subspan(first_weight), n_channels, bias_.size(),
                        acc.subspan(g * n_channels));
    }
  }

  /// The exact sums: as many runs at a time as surely fit 32 bits are added up in 64.
  void accumulate_wide(std::span<const std::int16_t> image, const TilePlace& place, std::vector<std::int32_t>& part,
                       std::vector<std::int64_t>& sum) const {
    const std::size_t at_once = layout_.depthwise ? kMaxRunLength : kMaxRunLength / layout_.run_length;
    sum.assign(n_values(place), 0);
    for (std::size_t r = 0; r < layout_.runs.size(); r += at_once) {
      part.assign(sum.size(), 0);
      accumulate(image, place, r, std::min(at_once, layout_.runs.size() - r), part);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
  }

  /// The intrinsic shift of the split product: tile.wide holds the high half's sums, tile.low the low half's.
  void join_halves(Tile& tile) const {
    for (std::size_t i = 0; i < tile.wide.size(); ++i) {
      const bool high = layer_.intrinsic_shift[i % bias_.size()] == 8;
      tile.wide[i] = high ? tile.wide[i] + shift_half_even(tile.low[i], 7) : tile.wide[i] * 128 + tile.low[i];
    }
  }

  RequantCounts requantize_wide(Tile& tile) const {
    const bool saturates = layer_.rounding == Rounding::folded || layer_.rounding == Rounding::after_shift;
    if (!layer_.accumulator_32_bit || saturates) {
      return requantize(layer_.rounding, lanes(), layer_.output, std::span<const std::int64_t>(tile.wide), tile.codes);
    }
    std::uint64_t n_wrapped = 0;
    tile.narrow.resize(tile.wide.size());
    for (std::size_t i = 0; i < tile.wide.size(); ++i) {
      tile.narrow[i] = static_cast<std::int32_t>(tile.wide[i]);
      n_wrapped += tile.narrow[i] != tile.wide[i] ? 1 : 0;
    }
    RequantCounts counts =
        requantize(layer_.rounding, lanes(), layer_.output, std::span<const std::int32_t>(tile.narrow), tile.codes);
    counts.wide = n_wrapped;
    return counts;
  }

  const IntegerLayer& layer_;
  const WeightLayout& layout_;
  std::span<const std::int64_t> bias_;
  const ImagePlan& plan_;
  const Passes& passes_;
  std::vector<std::size_t> offsets_;
};

template <class T>
void store(std::span<const std::int32_t> codes, std::uint8_t* to) {
  T* out = reinterpret_cast<T*>(to);
  for (std::size_t i = 0; i < codes.size(); ++i) out[i] = static_cast<T>(codes[i]);
}

void store_codes(std::span<const std::int32_t> codes, DType dtype, std::uint8_t* to) {
  if (dtype == DType::i8) store<std::int8_t>(codes, to);
  if (dtype == DType::u8) store<std::uint8_t>(codes, to);
  if (dtype == DType::i16) store<std::int16_t>(codes, to);
  if (dtype == DType::i32) store<std::int32_t>(codes, to);
}

/// Accumulators of one tile: enough to keep the kernels busy, few enough for the first-level cache.
constexpr std::int64_t kTileValues = 8192;

std::int64_t tile_pixels(std::size_t n_channels, std::int64_t row) {
  return std::min(row, std::max<std::int64_t>(8, kTileValues / static_cast<std::int64_t>(n_channels)));
}

/// Runs `run` over all tiles of the image. The tiles are dealt out in blocks; each writes its own bytes and counts.
RequantCounts run_tiles(const ImageRun& run, const ImagePlan& plan, bool wide, DType dtype, std::size_t n_channels,
                        std::span<std::uint8_t> output, unsigned jobs) {
  const AxisPlan& d = plan.axis[0];
  const AxisPlan& h = plan.axis[1];
  const AxisPlan& w = plan.axis[2];
  const std::int64_t pixels = tile_pixels(n_channels, w.out);
  const std::int64_t tiles_of_row = (w.out + pixels - 1) / pixels;
  const auto n_tiles = static_cast<std::size_t>(d.out * h.out * tiles_of_row);
  const std::size_t n_blocks = std::min<std::size_t>(n_tiles, jobs == 1 ? 1 : std::size_t{jobs} * 4);
  const std::size_t pixel_bytes = n_channels * size_bits(dtype) / 8;
  std::vector<RequantCounts> counts(n_blocks);
  parallel_for(n_blocks, jobs, [&](std::size_t block) {
    Tile tile;
    for (std::size_t t = n_tiles * block / n_blocks; t < n_tiles * (block + 1) / n_blocks; ++t) {
      const std::int64_t row = static_cast<std::int64_t>(t) / tiles_of_row;
      const std::int64_t first = static_cast<std::int64_t>(t) % tiles_of_row * pixels;
      const TilePlace place{row / h.out, row % h.out, first, std::min(pixels, w.out - first)};
      const RequantCounts more = wide ? run.wide_tile(place, tile) : run.narrow_tile(place, tile);
      counts[block].saturated += more.saturated;
      counts[block].wide += more.wide;
      store_codes(tile.codes, dtype, output.data() + static_cast<std::size_t>(row * w.out + first) * pixel_bytes);
    }
  });
  RequantCounts sum;
  for (const RequantCounts& c : counts) sum.saturated += c.saturated, sum.wide += c.wide;
  return sum;
}

}  // namespace

Simulator::Simulator(IntegerLayer layer) {
  check_layer(layer);
  Prepared prepared;
  prepared.layout = lay_out_weights(layer);
  prepared.bias = bias_for_codes(layer);
  prepared.split = std::ranges::count(layer.intrinsic_shift, 8) > 0;
  prepared.wide = !layer.intrinsic_shift.empty() || accumulator_bound(layer) > std::numeric_limits<std::int32_t>::max();
  prepared.layer = std::move(layer);
  prepared_ = std::make_unique<const Prepared>(std::move(prepared));
}
Simulator::~Simulator() = default;
Simulator::Simulator(Simulator&&) noexcept = default;

Simulation Simulator::run(const ActivationView& input, unsigned jobs) const {
  const IntegerLayer& layer = prepared_->layer;
  const WeightLayout& layout = prepared_->layout;
  const std::vector<std::int64_t>& bias = prepared_->bias;
  const bool split = prepared_->split;
  const Resolved resolved = resolve(layer, input);
  const ImagePlan plan = plan_image(layer, resolved.in, layout.channel_repeat);
  Simulation result{layer.output_dtype, output_shape(layer, input, resolved, plan), {}, {}};
  result.bytes.resize(size_bytes(result.shape, result.dtype, layer.name));
  const std::size_t n_images = static_cast<std::size_t>(resolved.batch);
  const std::size_t in_bytes = input.bytes.size() / n_images, out_bytes = result.bytes.size() / n_images;
  const CodePart part = split ? CodePart::high : prepared_->halved() ? CodePart::halved : CodePart::whole;
  for (std::size_t n = 0; n < n_images; ++n) {
    const auto image = input.bytes.subspan(n * in_bytes, in_bytes);
    const auto pad = [&](CodePart p) {
      return pad_image(plan, input.dtype, image, layer.input_zero_point, p, kMaxRunLength);
    };
    const Passes passes{pad(part), split ? pad(CodePart::low) : std::vector<std::int16_t>{}};
    const ImageRun run(layer, layout, bias, plan, passes);
    const RequantCounts counts = run_tiles(run, plan, prepared_->wide, result.dtype, bias.size(),
                                           std::span(result.bytes).subspan(n * out_bytes, out_bytes), jobs);
    result.counts.saturated += counts.saturated;
    result.counts.wide += counts.wide;
  }
  return result;
}

Simulation simulate(const IntegerLayer& layer, const ActivationView& input, unsigned jobs) {
  return Simulator(layer).run(input, jobs);
}

ChainSimulation simulate_chain(std::span<const IntegerLayer> layers, const ActivationView& input, unsigned jobs) {
  if (layers.empty()) fail(ErrorCode::bad_request, "chain", "no layer to run");
  ChainSimulation chain;
  for (const IntegerLayer& layer : layers) {
    const ActivationView from = chain.counts.empty() ? input : chain.output.view();
    chain.output = simulate(layer, from, jobs);  // `from` is read before the output it may view is replaced
    chain.counts.push_back(chain.output.counts);
  }
  return chain;
}

}  // namespace weightmill
