#include "padded_image.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/kernels/rounding_rules.h>

namespace weightmill {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 31;

AxisPlan plan_axis(const IntegerLayer& layer, std::size_t i, std::int64_t in) {
  const ConvGeometry& g = layer.geometry;
  const std::int64_t reach = (layer.weight_shape[i] - 1) * g.dilation[i] + 1;
  AxisPlan axis{.in = in, .stride = g.stride[i], .dilation = g.dilation[i], .front = g.pad_before[i]};
  if (g.transposed) {
    axis.out = (in - 1) * g.stride[i] + reach - g.pad_before[i] - g.pad_after[i];
    axis.stride = 1;
    axis.spread = g.stride[i];
    axis.front = reach - 1 - g.pad_before[i];
  } else {
    const std::int64_t room = in + g.pad_before[i] + g.pad_after[i] - reach;
    axis.out = room < 0 ? 0 : room / g.stride[i] + 1;
  }
  if (axis.out <= 0) {
    fail(ErrorCode::bad_request, layer.name,
         fmt::format(
             "spatial axis {} of {} elements, padded by {} and {}, leaves no output for a kernel that reaches {}", i,
             in, g.pad_before[i], g.pad_after[i], reach));
  }
  axis.padded = (axis.out - 1) * axis.stride + reach;
  return axis;
}

template <class T>
std::int16_t part_of(T code, CodePart part) {
  const auto q = static_cast<int>(code);
  switch (part) {
    case CodePart::halved:
      return static_cast<std::int16_t>(q >> 1);
    case CodePart::high:
      return static_cast<std::int16_t>(q >> 8);
    case CodePart::low:
      return static_cast<std::int16_t>(q >> 1 & 127);
    default:
      return static_cast<std::int16_t>(q);
  }
}

/// `pixel`: the channels of one input element.
template <class T>
void put_pixel(const ImagePlan& plan, const T* pixel, CodePart part, std::int16_t* to) {
  for (std::int64_t c = 0; c < plan.channels; ++c) {
    for (std::int64_t r = 0; r < plan.channel_repeat; ++r) *to++ = part_of(pixel[c], part);
  }
}

/// First and one past the last input element of an axis that lie inside the padded image.
struct Inside {
  std::int64_t first, end;
};

Inside inside(const AxisPlan& axis) {
  const auto up = [&](std::int64_t x) { return x <= 0 ? 0 : (x + axis.spread - 1) / axis.spread; };
  const std::int64_t first = std::min(axis.in, up(-axis.front));
  return {first, std::max(first, std::min(axis.in, up(axis.padded - axis.front)))};
}

/// One row of the input, at its places in one row of the padded image.
template <class T>
void put_row(const ImagePlan& plan, const T* row, CodePart part, std::int16_t* to) {
  const AxisPlan& w = plan.axis[2];
  const Inside columns = inside(w);
  const auto step = static_cast<std::ptrdiff_t>(plan.padded_channels());
  if (part == CodePart::whole && w.spread == 1 && plan.channel_repeat == 1) {
    std::copy(row + columns.first * plan.channels, row + columns.end * plan.channels,
              to + (w.front + columns.first) * step);
    return;
  }
  for (std::int64_t i = columns.first; i < columns.end; ++i) {
    put_pixel(plan, row + i * plan.channels, part, to + (w.front + i * w.spread) * step);
  }
}

template <class T>
void put_image(const ImagePlan& plan, std::span<const std::uint8_t> image, CodePart part, std::int16_t* to) {
  const auto& [d, h, w] = plan.axis;
  const T* codes = reinterpret_cast<const T*>(image.data());
  const Inside depth = inside(d), height = inside(h);
  for (std::int64_t z = depth.first; z < depth.end; ++z) {
    for (std::int64_t y = height.first; y < height.end; ++y) {
      const std::int64_t row = (d.front + z * d.spread) * h.padded + h.front + y * h.spread;
      put_row(plan, codes + (z * h.in + y) * w.in * plan.channels, part,
              to + static_cast<std::size_t>(row) * plan.row_elements());
    }
  }
}

void check_size(const IntegerLayer& layer, std::string_view what, std::initializer_list<std::int64_t> extents) {
  Int128 size = 1;  // each extent is below 2^41, so that three and a channel count fit
  for (const std::int64_t extent : extents) {
    size *= extent;
    if (size > kMaxElements) {
      fail(ErrorCode::bad_request, layer.name, fmt::format("the {} would have more than 2^31 elements", what));
    }
  }
}

}  // namespace

ImagePlan plan_image(const IntegerLayer& layer, const std::array<std::int64_t, 3>& in, std::int64_t channel_repeat) {
  const Shape& shape = layer.weight_shape;
  const std::size_t n_axes = shape.size() - 3;
  ImagePlan plan;
  plan.channels = shape[n_axes] * shape[n_axes + 1];
  plan.channel_repeat = channel_repeat;
  for (std::size_t i = 0; i < n_axes; ++i) plan.axis[3 - n_axes + i] = plan_axis(layer, i, in[3 - n_axes + i]);
  const auto& [d, h, w] = plan.axis;
  check_size(layer, "padded input", {d.padded, h.padded, w.padded, plan.channels, channel_repeat});
  check_size(layer, "output", {d.out, h.out, w.out, shape[n_axes + 1], shape[n_axes + 2]});
  return plan;
}

std::vector<std::int16_t> pad_image(const ImagePlan& plan, DType dtype, std::span<const std::uint8_t> image,
                                    std::int64_t zero, CodePart part, std::size_t slack) {
  std::vector<std::int16_t> padded(plan.rows() * plan.row_elements() + slack, part_of(zero, part));
  if (dtype == DType::i8) put_image<std::int8_t>(plan, image, part, padded.data());
  if (dtype == DType::u8) put_image<std::uint8_t>(plan, image, part, padded.data());
  if (dtype == DType::i16) put_image<std::int16_t>(plan, image, part, padded.data());
  return padded;
}

}  // namespace weightmill
