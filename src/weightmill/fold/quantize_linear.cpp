#include "quantize_linear.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <weightmill/kernels/fake_quantize.h>
#include <weightmill/kernels/quantize_linear.h>

#include "scale_runs.h"

namespace weightmill {
namespace {

bool is_signed(DType type) {
  return type == DType::i2 || type == DType::i4 || type == DType::i8 || type == DType::i16;
}

CodeRange range_of(DType type) {
  const int bits = static_cast<int>(size_bits(type));
  return is_signed(type) ? CodeRange{-(1 << (bits - 1)), (1 << (bits - 1)) - 1} : CodeRange{0, (1 << bits) - 1};
}

/// The code whose low 16 bits a kernel has written.
std::int32_t widen(std::uint16_t code, bool is_signed_code) {
  return is_signed_code ? static_cast<std::int16_t>(code) : static_cast<std::int32_t>(code);
}

void narrow_codes(std::span<const std::uint16_t> codes, std::uint8_t* out) {
  for (std::size_t i = 0; i < codes.size(); ++i) out[i] = static_cast<std::uint8_t>(codes[i]);
}

/// Four codes to a byte, the first in the lowest bits.
void pack_2_bits(std::span<const std::uint16_t> codes, std::span<std::uint8_t> out) {
  std::fill(out.begin(), out.end(), std::uint8_t{0});
  for (std::size_t i = 0; i < codes.size(); ++i) {
    out[i / 4] = static_cast<std::uint8_t>(out[i / 4] | (codes[i] & 3u) << (i % 4 * 2));
  }
}

void pack(DType type, std::span<const std::uint16_t> codes, std::span<std::uint8_t> out) {
  switch (size_bits(type)) {
    case 16:
      for (std::size_t i = 0; i < codes.size(); ++i) {
        out[2 * i] = static_cast<std::uint8_t>(codes[i]);
        out[2 * i + 1] = static_cast<std::uint8_t>(codes[i] >> 8);
      }
      return;
    case 8:
      return narrow_codes(codes, out.data());
    case 4: {
      std::vector<std::uint8_t> bytes(codes.size());
      narrow_codes(codes, bytes.data());
      return pack_nibbles(bytes, false, out.data());
    }
    default:
      return pack_2_bits(codes, out);
  }
}

/// How far, in real units, weights lie beyond the values of their codes on the far side of saturation or on either side.
class Distance {
 public:
  Distance(CodeRange range, bool is_signed_code) : range_(range), signed_(is_signed_code) {}

  /// The largest distance of x and code * scale in a run with one scale. Exact but for one rounding: a code and a float32
  /// scale multiply exactly in float64.
  double largest(std::span<const float> x, std::span<const std::uint16_t> codes, float scale, std::int32_t zero_point) const {
    const double step = scale;
    const double sign = scale < 0 ? -1 : 1;
    double largest = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::int32_t code = widen(codes[i], signed_);
      const double beyond = (static_cast<double>(x[i]) - step * (code - zero_point)) * sign;
      const double above = code == range_.high ? 0 : beyond;
      const double below = code == range_.low ? 0 : -beyond;
      largest = std::max(largest, std::max(above, below));
    }
    return largest;
  }

 private:
  CodeRange range_;
  bool signed_;
};

class QuantizeLinearFold : public ConstantFold {
 public:
  QuantizeLinearFold(QuantizeLinear operation, const ScaleLayout& layout)
      : operation_(std::move(operation)), layout_(layout), range_(range_of(operation_.code_type)) {
    if (operation_.zero_point.empty()) operation_.zero_point.assign(operation_.scale.size(), 0);
    const auto is_zero = [](std::int32_t zero_point) { return zero_point == 0; };
    const bool none = std::all_of(operation_.zero_point.begin(), operation_.zero_point.end(), is_zero);
    zero_point_ = none ? ZeroPoint::none : ZeroPoint::kept;
  }

  DType code_type() const noexcept override { return operation_.code_type; }
  const Shape& shape() const noexcept override { return operation_.shape; }
  ZeroPoint zero_point() const noexcept override { return zero_point_; }

  BlockResult codes(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const override {
    std::vector<float> x(count);
    std::vector<std::uint16_t> codes(count);
    operation_.read(first, x);
    BlockResult result;
    for (std::uint64_t done = 0; done < count;) {
      const ScaleRun run = run_at(layout_, first + done, count - done);
      const auto part = std::span(x).subspan(done, run.count);
      const auto part_codes = std::span(codes).subspan(done, run.count);
      result.saw_nan |= quantize(part, run, part_codes);
      check(part, run, part_codes, result.error);
      done += run.count;
    }
    pack(operation_.code_type, codes, out);
    return result;
  }

  std::string objection(const BlockResult& result) const override {
    if (result.saw_nan) return "a weight is NaN";
    if (!result.error.exceeds) return "";
    return fmt::format("a code is {} steps beyond the half step that rounding may take", result.error.max_steps);
  }

 private:
  bool quantize(std::span<const float> x, const ScaleRun& run, std::span<std::uint16_t> codes) const {
    const auto scales = std::span(operation_.scale).subspan(run.scale);
    const auto zero_points = std::span(operation_.zero_point).subspan(run.scale);
    if (run.advances) return quantize_linear_each(x, scales.first(x.size()), zero_points.first(x.size()), range_, codes);
    return quantize_linear_run(x, scales[0], zero_points[0], range_, codes);
  }

  /// x / scale is rounded to float32 once: it is off by at most 2^-24 of itself, which is at most as large as the range.
  void check(std::span<const float> x, const ScaleRun& run, std::span<const std::uint16_t> codes, StepError& error) const {
    const Distance distance(range_, is_signed(operation_.code_type));
    const double bound = (static_cast<double>(range_.high) - range_.low + 1) * 0x1p-24;
    const std::size_t length = run.advances ? 1 : x.size();
    for (std::size_t i = 0; i < x.size(); i += length) {
      const float scale = operation_.scale[run.scale + i];
      const double largest =
          distance.largest(x.subspan(i, length), codes.subspan(i, length), scale, operation_.zero_point[run.scale + i]);
      error.add(std::max(0.0, largest / std::abs(static_cast<double>(scale)) - 0.5), bound);
    }
  }

  QuantizeLinear operation_;
  ScaleLayout layout_;
  CodeRange range_;
  ZeroPoint zero_point_;
};

std::string objection_to_types(const QuantizeLinear& operation) {
  if (operation.type != DType::f32 && operation.type != DType::f16 && operation.type != DType::bf16) {
    return fmt::format("its data is {}, not float32, float16 or bfloat16", name_of(operation.type));
  }
  if (operation.scale_type == operation.type) return "";
  return fmt::format("its data is {} and its scale {}", name_of(operation.type), name_of(operation.scale_type));
}

std::string objection_to_scales(const QuantizeLinear& operation) {
  for (std::size_t i = 0; i < operation.scale.size(); ++i) {
    const float scale = operation.scale[i];
    if (scale == 0 || !std::isfinite(scale)) return fmt::format("scale {} is {}", i, scale);
  }
  return "";
}

using LayoutOrReason = std::variant<ScaleLayout, Left>;

LayoutOrReason blocked_layout(const QuantizeLinear& operation, std::size_t axis, ScaleLayout layout) {
  layout.block = static_cast<std::uint64_t>(operation.block_size);
  layout.per_inner = true;
  Shape wanted = operation.shape;
  const std::int64_t block = operation.block_size;
  wanted[axis] = wanted[axis] / block + (wanted[axis] % block != 0 ? 1 : 0);
  if (operation.scale_shape == wanted) return layout;
  return Left{fmt::format("its scale has shape {}, and blocks of {} along axis {} of {} need {}", to_string(operation.scale_shape),
                          block, axis, to_string(operation.shape), to_string(wanted))};
}

LayoutOrReason channel_layout(const QuantizeLinear& operation, std::size_t axis, ScaleLayout layout) {
  layout.block = 1;
  if (operation.scale_shape == Shape{operation.shape[axis]}) return layout;
  return Left{fmt::format("its scale has shape {}, and axis {} of {} needs [{}]", to_string(operation.scale_shape), axis,
                          to_string(operation.shape), operation.shape[axis])};
}

LayoutOrReason layout_of(const QuantizeLinear& operation) {
  if (operation.block_size < 0) return Left{fmt::format("block_size {} is negative", operation.block_size)};
  const bool one_scale = operation.scale_shape.empty() || operation.scale_shape == Shape{1};
  if (operation.block_size == 0 && one_scale) return ScaleLayout{};
  const auto rank = static_cast<std::int64_t>(operation.shape.size());
  if (operation.axis < -rank || operation.axis >= rank) {
    return Left{fmt::format("axis {} is not one of the {} of its data", operation.axis, rank)};
  }
  const auto axis = static_cast<std::size_t>(operation.axis < 0 ? operation.axis + rank : operation.axis);
  ScaleLayout layout;
  layout.length = static_cast<std::uint64_t>(operation.shape[axis]);
  for (std::size_t i = axis + 1; i < operation.shape.size(); ++i) layout.inner *= static_cast<std::uint64_t>(operation.shape[i]);
  return operation.block_size > 0 ? blocked_layout(operation, axis, layout) : channel_layout(operation, axis, layout);
}

}  // namespace

std::variant<std::unique_ptr<ConstantFold>, Left> plan_quantize_linear(QuantizeLinear operation) {
  for (const std::string& reason : {objection_to_types(operation), objection_to_scales(operation)}) {
    if (!reason.empty()) return Left{reason};
  }
  const LayoutOrReason layout = layout_of(operation);
  if (const auto* left = std::get_if<Left>(&layout)) return *left;
  if (!operation.zero_point.empty() && operation.zero_point.size() != operation.scale.size()) {
    return Left{fmt::format("its zero point has shape {} and its scale {}", to_string(operation.zero_point_shape),
                            to_string(operation.scale_shape))};
  }
  return std::make_unique<QuantizeLinearFold>(std::move(operation), std::get<ScaleLayout>(layout));
}

}  // namespace weightmill
