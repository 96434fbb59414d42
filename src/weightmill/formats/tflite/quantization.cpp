#include "quantization.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

void check_scales(const std::vector<float>& scales, std::string_view where) {
  for (std::size_t i = 0; i < scales.size(); ++i) {
    if (!(scales[i] > 0) || std::isinf(scales[i])) {
      fail(ErrorCode::bad_file, where, fmt::format("scale {} is {}, wanted a positive number", i, scales[i]));
    }
  }
}

std::vector<std::int64_t> matched_zero_points(std::vector<std::int64_t> points, std::size_t n_scales,
                                              std::string_view where) {
  if (points.empty()) points.assign(1, 0);
  if (points.size() == 1) points.resize(n_scales, points[0]);
  if (points.size() != n_scales) {
    fail(ErrorCode::bad_file, where, fmt::format("has {} scales and {} zero points", n_scales, points.size()));
  }
  return points;
}

int checked_axis(int axis, std::size_t n_scales, const Shape& shape, std::string_view where) {
  if (n_scales == 1) return 0;
  const auto rank = static_cast<int>(shape.size());
  if (rank == 1) axis = 0;
  if (axis < 0 || axis >= rank) {
    fail(ErrorCode::bad_file, where, fmt::format("is quantized along axis {} of shape {}", axis, to_string(shape)));
  }
  const std::int64_t extent = shape[static_cast<std::size_t>(axis)];
  if (!std::cmp_equal(extent, n_scales)) {
    fail(ErrorCode::bad_file, where,
         fmt::format("has {} scales along axis {} of shape {}, wanted 1 or {}", n_scales, axis, to_string(shape),
                     extent));
  }
  return axis;
}

}  // namespace

Affine read_affine(Container& container, const tflite::QuantizationParameters* source, const Shape& shape,
                   std::string_view where) {
  Affine affine;
  if (source == nullptr || size_of(source->scale()) == 0) return affine;
  affine.scale = container.numbers<float>(source->scale());
  check_scales(affine.scale, where);
  affine.zero_point =
      matched_zero_points(container.numbers<std::int64_t>(source->zero_point()), affine.scale.size(), where);
  affine.axis = checked_axis(source->quantized_dimension(), affine.scale.size(), shape, where);
  return affine;
}

std::string_view quantization_details(const tflite::QuantizationParameters* source) {
  if (source == nullptr || source->details_type() == tflite::QuantizationDetails::NONE) return {};
  const std::string_view name = tflite::EnumNameQuantizationDetails(source->details_type());
  return name.empty() ? "unknown" : name;
}

}  // namespace weightmill
