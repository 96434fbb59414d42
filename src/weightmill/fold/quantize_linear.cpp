#include "quantize_linear.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <weightmill/kernels/fake_quantize.h>
#include <weightmill/kernels/quantize_linear.h>
#include <weightmill/model/scale_layout.h>

#include "numbers.h"

namespace weightmill {
namespace {

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

/// Elements that are read, coded and checked at a time: their codes and floats stay in the first-level cache. A
/// multiple of the codes in a byte.
constexpr std::uint64_t kChunk = 4096;

class QuantizeLinearFold : public ConstantFold {
 public:
  QuantizeLinearFold(QuantizeLinear operation, const ScaleLayout& layout)
      : operation_(std::move(operation)), layout_(layout), range_{min_code(operation_.code_type), max_code(operation_.code_type)} {
    if (operation_.zero_point.empty()) operation_.zero_point.assign(operation_.scale.size(), 0);
    for (const float scale : operation_.scale) steps_per_unit_.push_back(1 / static_cast<double>(scale));
    const auto is_zero = [](std::int32_t zero_point) { return zero_point == 0; };
    const bool none = std::all_of(operation_.zero_point.begin(), operation_.zero_point.end(), is_zero);
    zero_point_ = none ? ZeroPoint::none : ZeroPoint::kept;
  }

  DType code_type() const noexcept override { return operation_.code_type; }
  const Shape& shape() const noexcept override { return operation_.shape; }
  ZeroPoint zero_point() const noexcept override { return zero_point_; }

  BlockResult codes(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const override {
    std::vector<float> x(std::min(count, kChunk));
    std::vector<std::uint16_t> codes(x.size());
    BlockResult result;
    for (std::uint64_t done = 0; done < count; done += kChunk) {
      const std::uint64_t n = std::min(kChunk, count - done);
      code_chunk(first + done, std::span(x).first(n), std::span(codes).first(n), result);
      pack(operation_.code_type, std::span(codes).first(n), out.subspan(code_bytes(operation_.code_type, done)));
    }
    return result;
  }

  std::string objection(const BlockResult& result) const override {
    if (result.saw_nan) return "a weight is NaN";
    if (!result.error.exceeds) return "";
    return fmt::format("a code is {} steps beyond the half step that rounding may take", result.error.max_steps);
  }

 private:
  void code_chunk(std::uint64_t first, std::span<float> x, std::span<std::uint16_t> codes, BlockResult& result) const {
    operation_.read(first, x);
    double distance = 0;
    for (std::uint64_t done = 0; done < x.size();) {
      const ScaleRun run = run_at(layout_, first + done, x.size() - done);
      code_run(run, x.subspan(done, run.count), codes.subspan(done, run.count), result.saw_nan, distance);
      done += run.count;
    }
    // x / scale is rounded once: it is off by at most 2^-24 of itself (in float32), and at most as large as the range.
    const double width = static_cast<double>(range_.high) - range_.low + 1;
    const double bound = width * Precision{operation_.division}.unit_roundoff();
    result.error.add(std::max(0.0, distance - 0.5), bound);
  }

  void code_run(const ScaleRun& run, std::span<const float> x, std::span<std::uint16_t> codes, bool& saw_nan,
                double& distance) const {
    const auto scales = std::span(operation_.scale).subspan(run.scale);
    const auto inverses = std::span(steps_per_unit_).subspan(run.scale);
    const auto zero_points = std::span(operation_.zero_point).subspan(run.scale);
    saw_nan |= operation_.division == DType::f32 ? quantize(run.advances, x, scales, zero_points, codes)
                                                 : quantize_rounded(run.advances, x, scales, zero_points, codes);
    if (run.advances) {
      distance = std::max(distance, linear_distance_each(x, codes, inverses, zero_points, range_));
    } else {
      distance = std::max(distance, linear_distance_run(x, codes, inverses[0], zero_points[0], range_));
    }
  }

  bool quantize(bool advances, std::span<const float> x, std::span<const float> scales,
                std::span<const std::int32_t> zero_points, std::span<std::uint16_t> codes) const {
    if (!advances) return quantize_linear_run(x, scales[0], zero_points[0], range_, codes);
    return quantize_linear_each(x, scales.first(x.size()), zero_points.first(x.size()), range_, codes);
  }

  /// The same where quotients are narrower than float32. Of float16 and bfloat16 the float32 quotient has digits enough
  /// that rounding it again gives the narrow one.
  bool quantize_rounded(bool advances, std::span<const float> x, std::span<const float> scales,
                        std::span<const std::int32_t> zero_points, std::span<std::uint16_t> codes) const {
    static const std::vector<float> kOnes(kChunk, 1.0f);
    const Precision narrow{operation_.division};
    std::vector<float> quotients(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) quotients[i] = narrow.round(x[i] / scales[advances ? i : 0]);
    return quantize(advances, quotients, kOnes, zero_points, codes);
  }

  QuantizeLinear operation_;
  std::vector<double> steps_per_unit_;  ///< 1 / scale
  ScaleLayout layout_;
  CodeRange range_;
  ZeroPoint zero_point_;
};

std::string objection_to_types(const QuantizeLinear& operation) {
  if (operation.type != DType::f32 && operation.type != DType::f16 && operation.type != DType::bf16) {
    return fmt::format("its data is {}, not float32, float16 or bfloat16", name_of(operation.type));
  }
  if (operation.scale_type == operation.type) {
    const bool known = operation.division == DType::f32 || operation.division == operation.type;
    return known ? "" : fmt::format("it asks for a division in {}", name_of(operation.division));
  }
  return fmt::format("its data is {} and its scale {}", name_of(operation.type), name_of(operation.scale_type));
}

std::string objection_to_scales(const QuantizeLinear& operation) {
  for (std::size_t i = 0; i < operation.scale.size(); ++i) {
    const float scale = operation.scale[i];
    if (scale == 0 || !std::isfinite(scale)) return fmt::format("scale {} is {}", i, scale);
  }
  return "";
}

/// One zero point for each scale, in the same order; [] and [1] mean the same.
bool zero_point_fits(const QuantizeLinear& operation) {
  if (operation.zero_point.empty()) return true;  // there is none, or nothing to have one
  if (operation.zero_point.size() != operation.scale.size()) return false;
  return operation.scale.size() == 1 || operation.zero_point_shape == operation.scale_shape;
}

using LayoutOrReason = std::variant<ScaleLayout, Left>;

LayoutOrReason blocked_layout(const QuantizeLinear& operation, std::size_t axis) {
  ScaleLayout layout = ScaleLayout::along(operation.shape, axis, static_cast<std::uint64_t>(operation.block_size));
  layout.per_inner = true;  // also in blocks of 1: the scale has all axes of the data
  Shape wanted = operation.shape;
  const std::int64_t block = operation.block_size;
  wanted[axis] = wanted[axis] / block + (wanted[axis] % block != 0 ? 1 : 0);
  if (operation.scale_shape == wanted) return layout;
  return Left{fmt::format("its scale has shape {}, and blocks of {} along axis {} of {} need {}",
                          to_string(operation.scale_shape), block, axis, to_string(operation.shape),
                          to_string(wanted))};
}

LayoutOrReason group_layout(const QuantizeLinear& operation, std::size_t axis) {
  if (axis > 0 && operation.scale_shape == Shape{operation.shape[0], operation.shape[axis]})
    return ScaleLayout::along_groups(operation.shape, axis);
  return Left{fmt::format("its scale has shape {}, and does not lie along axes 0 and {} of {}",
                          to_string(operation.scale_shape), axis, to_string(operation.shape))};
}

LayoutOrReason channel_layout(const QuantizeLinear& operation, std::size_t axis) {
  if (operation.scale_shape == Shape{operation.shape[axis]}) return ScaleLayout::along(operation.shape, axis);
  return Left{fmt::format("its scale has shape {}, and axis {} of {} needs [{}]", to_string(operation.scale_shape),
                          axis, to_string(operation.shape), operation.shape[axis])};
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
  if (operation.grouped) return group_layout(operation, axis);
  return operation.block_size > 0 ? blocked_layout(operation, axis) : channel_layout(operation, axis);
}

}  // namespace

std::variant<std::unique_ptr<ConstantFold>, Left> plan_quantize_linear(QuantizeLinear operation) {
  for (const std::string& reason : {objection_to_types(operation), objection_to_scales(operation)}) {
    if (!reason.empty()) return Left{reason};
  }
  const LayoutOrReason layout = layout_of(operation);
  if (const auto* left = std::get_if<Left>(&layout)) return *left;
  if (!zero_point_fits(operation)) {
    return Left{fmt::format("its zero point has shape {} and its scale {}", to_string(operation.zero_point_shape),
                            to_string(operation.scale_shape))};
  }
  return std::make_unique<QuantizeLinearFold>(std::move(operation), std::get<ScaleLayout>(layout));
}

}  // namespace weightmill
