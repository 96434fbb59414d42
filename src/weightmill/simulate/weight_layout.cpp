#include "weight_layout.h"

#include <algorithm>

#include <weightmill/base/bits.h>
#include <weightmill/kernels/convolve.h>

namespace weightmill {
namespace {

/// layer.weight_shape with three spatial axes, as unsigned sizes.
struct Extents {
  std::array<std::size_t, 3> kernel{1, 1, 1};
  std::size_t inputs = 1, groups = 1, outputs = 1;
  bool reversed = false;

  explicit Extents(const IntegerLayer& layer) : reversed(layer.geometry.transposed) {
    const Shape& shape = layer.weight_shape;
    const std::size_t n_axes = shape.size() - 3;
    const auto at = [&](std::size_t i) { return static_cast<std::size_t>(shape[i]); };
    for (std::size_t i = 0; i < n_axes; ++i) kernel[3 - n_axes + i] = at(i);
    inputs = at(n_axes), groups = at(n_axes + 1), outputs = at(n_axes + 2);
  }

  std::size_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  std::array<std::int64_t, 3> tap(std::size_t t) const {
    const auto index = [](std::size_t i) { return static_cast<std::int64_t>(i); };
    return {index(t / (kernel[1] * kernel[2])), index(t / kernel[2] % kernel[1]), index(t % kernel[2])};
  }
  /// First weight that the tap at place t of the padded image meets: [I, G, O] from there on.
  std::size_t weights_at(std::size_t t) const { return (reversed ? taps() - 1 - t : t) * inputs * groups * outputs; }
};

WeightLayout lay_out_depthwise(const IntegerLayer& layer, const Extents& e) {
  WeightLayout layout;
  layout.depthwise = true;
  layout.channel_repeat = static_cast<std::int64_t>(e.outputs);
  layout.run_length = layout.channels_of_group = e.groups * e.outputs;
  std::vector<std::int16_t>& weights = layout.groups.emplace_back();
  for (std::size_t t = 0; t < e.taps(); ++t) {
    const auto first = layer.weight.begin() + static_cast<std::ptrdiff_t>(e.weights_at(t));
    weights.insert(weights.end(), first, first + static_cast<std::ptrdiff_t>(layout.run_length));
    layout.runs.push_back({e.tap(t), 0});
  }
  return layout;
}

/// Neighbouring taps of a row, as long as they are neighbours in the image too, are one stretch of elements; stretches
/// are cut into runs of equal length, the last one topped up with elements that meet weight 0.
struct Stretches {
  std::size_t taps;      ///< of one stretch
  std::size_t elements;  ///< of one stretch
  std::size_t runs;      ///< of one stretch
  std::size_t length;    ///< of one run

  Stretches(const IntegerLayer& layer, const Extents& e) {
    const bool merge = e.groups == 1 && layer.geometry.dilation.back() == 1;
    taps = merge ? e.kernel[2] : 1;
    elements = taps * e.inputs;
    runs = ceil_div(elements, kMaxRunLength);
    length = ceil_to(ceil_div(elements, runs), std::size_t{2});
  }
};

/// Weights [run, length, O] of one group.
std::vector<std::int16_t> weights_of_group(const IntegerLayer& layer, const Extents& e, const Stretches& s,
                                           std::size_t group) {
  const std::size_t n_stretches = e.taps() / s.taps;
  std::vector<std::int16_t> weights(n_stretches * s.runs * s.length * e.outputs);
  for (std::size_t i = 0; i < n_stretches * s.elements; ++i) {
    const std::size_t stretch = i / s.elements, k = i % s.elements;
    const std::size_t t = stretch * s.taps + k / e.inputs;
    const std::size_t from = e.weights_at(t) + (k % e.inputs * e.groups + group) * e.outputs;
    const std::size_t to = (stretch * s.runs * s.length + k) * e.outputs;
    std::copy_n(layer.weight.begin() + static_cast<std::ptrdiff_t>(from), e.outputs,
                weights.begin() + static_cast<std::ptrdiff_t>(to));
  }
  return weights;
}

}  // namespace

WeightLayout lay_out_weights(const IntegerLayer& layer) {
  const Extents e(layer);
  if (e.inputs == 1 && e.groups > 1) return lay_out_depthwise(layer, e);
  const Stretches s(layer, e);
  WeightLayout layout;
  layout.run_length = s.length;
  layout.channels_of_group = e.outputs;
  layout.inputs_of_group = e.inputs;
  for (std::size_t t = 0; t < e.taps(); t += s.taps) {
    for (std::size_t r = 0; r < s.runs; ++r) layout.runs.push_back({e.tap(t), static_cast<std::int64_t>(r * s.length)});
  }
  for (std::size_t g = 0; g < e.groups; ++g) {
    layout.groups.push_back(pack_panels(weights_of_group(layer, e, s, g), layout.runs.size(), s.length, e.outputs));
  }
  return layout;
}

std::vector<std::size_t> run_offsets(const WeightLayout& layout, const ImagePlan& plan) {
  const auto& [d, h, w] = plan.axis;
  const auto channels = static_cast<std::int64_t>(plan.padded_channels());
  std::vector<std::size_t> offsets;
  offsets.reserve(layout.runs.size());
  for (const TapRun& run : layout.runs) {
    const std::int64_t row = run.tap[0] * d.dilation * h.padded + run.tap[1] * h.dilation;
    offsets.push_back(static_cast<std::size_t>((row * w.padded + run.tap[2] * w.dilation) * channels + run.first));
  }
  return offsets;
}

}  // namespace weightmill
