#include "check_layer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

constexpr std::int64_t kLargestWeight = 255;

[[noreturn]] void refuse(const IntegerLayer& layer, std::string_view why) {
  fail(ErrorCode::bad_request, layer.name, why);
}

struct CodeRange {
  std::int64_t low, high;
};

CodeRange input_range(const IntegerLayer& layer) {
  switch (layer.input_dtype) {
    case DType::i8:
      return {-128, 127};
    case DType::u8:
      return {0, 255};
    case DType::i16:
      return {-32768, 32767};
    default:
      fail(ErrorCode::unsupported, layer.name,
           fmt::format("input type {}; wanted int8, uint8 or int16", name_of(layer.input_dtype)));
  }
}

void check_axes(const IntegerLayer& layer) {
  const ConvGeometry& g = layer.geometry;
  const std::size_t n_axes = layer.weight_shape.size() - 3;
  for (const auto* values : {&g.stride, &g.dilation, &g.pad_before, &g.pad_after}) {
    if (values->size() != n_axes) {
      refuse(layer, fmt::format("stride, dilation and padding need {} values, one for each spatial axis; found {}",
                                n_axes, values->size()));
    }
  }
  constexpr std::int64_t kLimit = 1 << 20;  // far above any network's, so that extents cannot overflow
  const auto within = [](std::int64_t low) { return [low](std::int64_t v) { return low <= v && v <= kLimit; }; };
  if (!std::ranges::all_of(g.stride, within(1)) || !std::ranges::all_of(g.dilation, within(1))) {
    refuse(layer, fmt::format("stride and dilation must be in 1..{}", kLimit));
  }
  if (!std::ranges::all_of(g.pad_before, within(-kLimit)) || !std::ranges::all_of(g.pad_after, within(-kLimit))) {
    refuse(layer, fmt::format("padding must be within +-{}", kLimit));
  }
}

void check_weights(const IntegerLayer& layer, std::size_t n_channels) {
  const auto bad = std::ranges::find_if(layer.weight, [](std::int16_t w) { return std::abs(int{w}) > kLargestWeight; });
  if (bad != layer.weight.end()) {
    refuse(layer,
           fmt::format("weight {} less its zero point is {}, outside -255..255", bad - layer.weight.begin(), *bad));
  }
  if (!layer.bias.empty() && layer.bias.size() != n_channels) {
    refuse(layer, fmt::format("{} biases for {} output channels", layer.bias.size(), n_channels));
  }
}

void check_input(const IntegerLayer& layer, std::size_t n_channels) {
  const CodeRange range = input_range(layer);
  if (layer.input_zero_point < range.low || layer.input_zero_point > range.high) {
    refuse(layer,
           fmt::format("input zero point {} is no code of {}", layer.input_zero_point, name_of(layer.input_dtype)));
  }
  if (layer.intrinsic_shift.empty()) return;
  const bool legal = layer.intrinsic_shift.size() == n_channels && layer.input_dtype == DType::i16 &&
                     layer.bias_form == BiasForm::folded &&
                     std::ranges::all_of(layer.intrinsic_shift, [](int h) { return h == 1 || h == 8; });
  if (!legal) {
    refuse(layer,
           "intrinsic shifts are 1 or 8, one for each output channel, and go with int16 input and a folded bias");
  }
}

void check_output(const IntegerLayer& layer) {
  const OutputCodes limits = type_limits(layer.name, layer.output_dtype);
  const OutputCodes& o = layer.output;
  if (o.type_low != limits.type_low || o.type_high != limits.type_high || o.low < o.type_low || o.high > o.type_high ||
      o.low > o.high) {
    refuse(layer, fmt::format("output codes {}..{} do not lie within {}", o.low, o.high, name_of(layer.output_dtype)));
  }
  if (layer.output_dtype == DType::i32 && layer.rounding == Rounding::float_gain) {
    fail(ErrorCode::unsupported, layer.name, "float_gain makes 8- and 16-bit codes; float32 does not hold int32 ones");
  }
  if (is_openvino(layer.rounding) && size_bits(layer.output_dtype) != 8) {
    fail(ErrorCode::unsupported, layer.name, fmt::format("'{}' makes 8-bit codes", name_of(layer.rounding)));
  }
}

struct GainLimits {
  std::int64_t largest_multiplier;
  int smallest_shift, largest_shift;
};

GainLimits gain_limits(Rounding rule) {
  switch (rule) {
    case Rounding::folded:
      return {std::numeric_limits<std::int64_t>::max(), 0, 61};
    case Rounding::after_shift:
      return {127, 0, 61};
    case Rounding::int16x8:
      return {std::numeric_limits<std::int32_t>::max(), 17, 62};
    case Rounding::ethos_u_double:
    case Rounding::ethos_u_natural:
      return {std::numeric_limits<std::uint32_t>::max(), 0, 63};
    default:
      return {std::numeric_limits<std::int32_t>::max(), 0, 62};
  }
}

template <class Float>
void check_float_gains(const IntegerLayer& layer, const std::vector<Float>& gains, std::size_t n_channels) {
  const auto legal = [](Float g) { return std::isfinite(g) && g >= 0; };
  if (gains.size() != n_channels || !std::ranges::all_of(gains, legal)) {
    refuse(layer,
           fmt::format("'{}' needs {} gains, each finite and not negative", name_of(layer.rounding), n_channels));
  }
}

/// So that the first step of any accumulator is finite, and the second no NaN.
void check_steps(const IntegerLayer& layer, std::size_t n_channels) {
  check_float_gains(layer, layer.gain, n_channels);
  const auto usable_gain = [](float x) { return x <= 0x1p96F; };
  const auto usable_offset = [](float x) { return std::abs(x) <= 0x1p126F; };
  if (layer.offset.size() != n_channels || !std::ranges::all_of(layer.gain, usable_gain) ||
      !std::ranges::all_of(layer.offset, usable_offset) || !std::isfinite(layer.last.gain) ||
      !std::isfinite(layer.last.offset)) {
    refuse(layer, fmt::format("'{}' needs gains up to 2^96 and offsets within +-2^126, made from input, weight and "
                              "output scale",
                              name_of(layer.rounding)));
  }
}

void check_gains(const IntegerLayer& layer, std::size_t n_channels) {
  if (is_openvino(layer.rounding)) return check_steps(layer, n_channels);
  if (layer.rounding == Rounding::float_gain) return check_float_gains(layer, layer.gain, n_channels);
  if (layer.rounding == Rounding::double_gain) return check_float_gains(layer, layer.wide_gain, n_channels);
  const GainLimits limits = gain_limits(layer.rounding);
  const bool with_multiplier = layer.rounding != Rounding::folded;
  if (layer.shift.size() != n_channels || (with_multiplier && layer.multiplier.size() != n_channels)) {
    refuse(layer, fmt::format("'{}' needs a multiplier and a shift for each of {} output channels",
                              name_of(layer.rounding), n_channels));
  }
  for (std::size_t c = 0; c < n_channels; ++c) {
    if (layer.shift[c] < limits.smallest_shift || layer.shift[c] > limits.largest_shift) {
      refuse(layer, fmt::format("shift {} of channel {} is outside {}..{}", layer.shift[c], c, limits.smallest_shift,
                                limits.largest_shift));
    }
    if (with_multiplier && (layer.multiplier[c] < 0 || layer.multiplier[c] > limits.largest_multiplier)) {
      refuse(layer, fmt::format("multiplier {} of channel {} is outside 0..{}", layer.multiplier[c], c,
                                limits.largest_multiplier));
    }
  }
}

}  // namespace

std::size_t channels_of(const IntegerLayer& layer) {
  const std::size_t rank = layer.weight_shape.size();
  if (rank != 5 && rank != 6) {
    refuse(layer, fmt::format("weights of rank {}; wanted [kh, kw, I, G, O] or [kd, kh, kw, I, G, O]", rank));
  }
  const bool positive = std::ranges::all_of(layer.weight_shape, [](std::int64_t extent) { return extent > 0; });
  if (!positive || n_elements(layer.weight_shape, layer.name) != layer.weight.size()) {
    refuse(layer, fmt::format("weight shape {} and {} weights do not go together", to_string(layer.weight_shape),
                              layer.weight.size()));
  }
  return static_cast<std::size_t>(layer.weight_shape[rank - 2] * layer.weight_shape[rank - 1]);
}

OutputCodes type_limits(std::string_view where, DType dtype) {
  const auto limits = [](std::int32_t low, std::int32_t high) { return OutputCodes{0, low, high, low, high}; };
  switch (dtype) {
    case DType::i8:
      return limits(-128, 127);
    case DType::u8:
      return limits(0, 255);
    case DType::i16:
      return limits(-32768, 32767);
    case DType::i32:
      return limits(std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max());
    default:
      fail(ErrorCode::unsupported, where,
           fmt::format("output type {}; wanted int8, uint8, int16 or int32", name_of(dtype)));
  }
}

Int128 accumulator_bound(const IntegerLayer& layer) {
  const CodeRange range = input_range(layer);
  const std::int64_t zero = layer.bias_form == BiasForm::plain ? layer.input_zero_point : 0;
  const std::int64_t largest_input = std::max(range.high - zero, zero - range.low);
  const std::size_t n_channels = channels_of(layer);
  std::vector<std::int64_t> sum(n_channels);
  for (std::size_t row = 0; row < layer.weight.size(); row += n_channels) {
    for (std::size_t c = 0; c < n_channels; ++c) sum[c] += std::abs(int{layer.weight[row + c]});
  }
  Int128 bound = 0;
  for (std::size_t c = 0; c < n_channels; ++c) {
    const Int128 bias = layer.bias.empty() ? 0 : layer.bias[c];
    bound = std::max(bound, Int128{sum[c]} * largest_input + (bias < 0 ? -bias : bias));
  }
  return bound;
}

void check_layer(const IntegerLayer& layer) {
  const std::size_t n_channels = channels_of(layer);
  check_axes(layer);
  check_weights(layer, n_channels);
  check_input(layer, n_channels);
  check_output(layer);
  check_gains(layer, n_channels);
  if (accumulator_bound(layer) >= Int128{1} << 47) {
    refuse(layer, "weights and bias allow an accumulator of 2^47 or more; no engine has one");
  }
}

}  // namespace weightmill
