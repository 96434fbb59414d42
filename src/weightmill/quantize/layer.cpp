#include "layer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/kernels/channel_rows.h>

#include "scale.h"

namespace weightmill {
namespace {

constexpr double kI32Low = std::numeric_limits<std::int32_t>::min();
constexpr double kI32High = std::numeric_limits<std::int32_t>::max();

/// One row for each ConvMode, in its order. 32512 = 256 * 127: the 16-bit grid is 256 times the 8-bit one.
constexpr std::array<ModeTraits, 9> kTraits{{
    {8, true, false, -128, 127, 127},
    {16, true, false, -32768, 32512, 32512},
    {32, true, false, kI32Low, kI32High, kI32High},
    {8, false, true, -128, 127, 127},
    {16, false, true, -32768, 32767, 32767},
    {8, false, false, -128, 127, 127},
    {16, false, false, -32768, 32512, 32512},
    {8, false, false, -128, 127, 127},
    {16, false, false, -32767, 32767, 32767},
}};

[[noreturn]] void refuse(const ConvRequest& request, std::string_view code, std::string_view why) {
  fail(ErrorCode::bad_request, request.name, fmt::format("{}: {}", code, why));
}

std::size_t product(const ConvRequest& request, std::span<const std::int64_t> extents) {
  std::size_t n = 1;
  for (const std::int64_t extent : extents) {
    if (extent <= 0 || __builtin_mul_overflow(n, static_cast<std::size_t>(extent), &n)) {
      refuse(request, "E_SHAPE", fmt::format("weight shape {} has an extent below 1 or is too large",
                                             to_string(request.weight_shape)));
    }
  }
  return n;
}

void check_length(const ConvRequest& request, std::string_view what, std::size_t found, std::size_t wanted) {
  if (found == wanted) return;
  refuse(request, "E_SHAPE", fmt::format("{} has {} values; weight shape {} wants {}", what, found,
                                         to_string(request.weight_shape), wanted));
}

Layer shape_layer(const ConvRequest& request) {
  const std::span<const std::int64_t> shape(request.weight_shape);
  if (shape.size() != 5 && shape.size() != 6) {
    refuse(request, "E_SHAPE", fmt::format("weight shape {} has rank {}; wanted 5 (kh, kw, I, G, O) or 6 (kd, kh, kw, "
                                           "I, G, O): a dense layer is [1, 1, I, 1, O]",
                                           to_string(request.weight_shape), shape.size()));
  }
  const auto io = shape.last(3);
  const std::size_t n_rows = product(request, shape.first(shape.size() - 2));
  Layer layer{.request = request,
              .n_inputs = product(request, io.first(1)),
              .n_groups = product(request, io.subspan(1, 1)),
              .n_outputs = product(request, io.last(1)),
              .n_channels = product(request, io.last(2)),
              .n_rows = n_rows,
              .n_lanes = 1,
              .int16_input = is_mult31(request.mode) ? request.mode == ConvMode::mult31_i16 : request.int16_input,
              .channel_peak = {},
              .peak = {}};
  check_length(request, "weight", request.weight.size(), product(request, shape));
  if (request.bias) check_length(request, "bias", request.bias->size(), layer.n_channels);
  if (request.input_mean) {
    check_length(request, "input_mean", request.input_mean->size(), product(request, io.first(2)));
  }
  if (request.per_channel) layer.n_lanes = layer.n_channels;
  return layer;
}

void check_finite(const ConvRequest& request, std::string_view what, std::span<const float> values) {
  const auto bad = std::find_if(values.begin(), values.end(), [](float x) { return !std::isfinite(x); });
  if (bad == values.end()) return;
  refuse(request, "E_NOT_FINITE", fmt::format("{}[{}] is {}", what, bad - values.begin(), *bad));
}

/// Peaks of the channels; they also show what is not finite.
void find_peaks(Layer& layer) {
  std::vector<std::uint32_t> bits(layer.n_channels);
  channel_peak_bits(layer.request.weight, bits);
  layer.channel_peak.resize(bits.size());
  for (std::size_t c = 0; c < bits.size(); ++c) {
    if (bits[c] >= 0x7f800000u) check_finite(layer.request, "weight", layer.request.weight);
    layer.channel_peak[c] = static_cast<double>(std::bit_cast<float>(bits[c]));
  }
  layer.peak = layer.channel_peak;
  if (layer.n_lanes == 1) layer.peak = {*std::max_element(layer.peak.begin(), layer.peak.end())};
}

void check_numbers(Layer& layer) {
  const ConvRequest& request = layer.request;
  find_peaks(layer);
  if (request.bias) check_finite(request, "bias", *request.bias);
  if (request.input_mean) check_finite(request, "input_mean", *request.input_mean);
  const auto [low, high] = request.output;
  if (!std::isfinite(low) || !std::isfinite(high)) {
    refuse(request, "E_NOT_FINITE", fmt::format("output range is [{}, {}]", low, high));
  }
  if (low > high) refuse(request, "E_RANGE", fmt::format("output range [{}, {}] is reversed", low, high));
}

/// Whether an engine can store the scale 1 / steps_per_unit.
bool is_float_scale(double scale) noexcept {
  return static_cast<float>(scale) > 0 && scale <= static_cast<double>(std::numeric_limits<float>::max());
}

void check_input(const Layer& layer) {
  const ConvRequest& request = layer.request;
  const auto [steps, zero] = request.input;
  if (!(steps > 0) || !std::isfinite(steps) || (is_mult31(request.mode) && !is_float_scale(1 / steps))) {
    refuse(request, "E_INPUT_SCALE",
           fmt::format("input has {} steps per unit; wanted a positive, finite number{}", steps,
                       is_mult31(request.mode) ? " whose reciprocal float32 holds" : ""));
  }
  const std::int64_t limit = request.mode == ConvMode::mult31_i16 ? 0 : layer.int16_input ? 32768 : 128;
  if (zero < -limit || zero > std::max<std::int64_t>(limit - 1, 0)) {
    refuse(request, "E_INPUT_ZERO", fmt::format("input zero point {} is outside {}..{} (mode {})", zero, -limit,
                                                std::max<std::int64_t>(limit - 1, 0), name_of(request.mode)));
  }
}

void check_relu(const ConvRequest& request) {
  if (!request.relu_workaround) return;
  if (request.mode == ConvMode::pow2_folded_i8 || request.mode == ConvMode::pow2_folded_i16) return;
  refuse(request, "E_RELU_MODE", fmt::format("relu_workaround needs mode pow2_folded_i8 or pow2_folded_i16, not {}",
                                             name_of(request.mode)));
}

bool is_usable_output(double steps, ConvMode mode) noexcept {
  if (!(steps > 0x1p-512 && steps < 0x1p512)) return false;  // ranges of about 1e-152..1e154
  return !is_mult31(mode) || is_float_scale(1 / steps);
}

}  // namespace

const ModeTraits& traits_of(ConvMode mode) noexcept { return kTraits[static_cast<std::size_t>(mode)]; }

bool is_mult31(ConvMode mode) noexcept { return mode == ConvMode::mult31_i8 || mode == ConvMode::mult31_i16; }

Layer check_request(const ConvRequest& request) {
  Layer layer = shape_layer(request);
  check_numbers(layer);
  check_input(layer);
  check_relu(request);
  return layer;
}

bool plans_zero_output(const ConvRequest& request) noexcept {
  return request.allow_zero_output && request.output.low == 0 && request.output.high == 0;
}

Grid wanted_output(const ConvRequest& request, ConvMode mode) {
  if (plans_zero_output(request)) return {.steps_per_unit = 1, .zero_point = 0};
  const ModeTraits& traits = traits_of(mode);
  const double high = request.asymmetric ? traits.code_high : traits.symmetric_high;
  const double low = request.asymmetric ? traits.code_low : -high;
  const Grid grid = grid_for_range(request.output.low, request.output.high, low, high);
  if (is_usable_output(grid.steps_per_unit, mode)) return grid;
  refuse(request, "E_ZERO_OUTPUT",
         fmt::format("output range [{}, {}] gives no usable scale in mode {}; check the calibration data{}",
                     request.output.low, request.output.high, name_of(mode),
                     request.output.low == request.output.high ? ", or allow a zero output" : ""));
}

}  // namespace weightmill
