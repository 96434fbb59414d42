#include "weight_layout.h"

#include <utility>

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

/// One axis of the planner's order: how long it is and how far apart its neighbours are in the model's order.
struct Axis {
  std::int64_t extent;
  std::int64_t stride;
};

/// Builds the planner's axes from the model's.
class AxisFinder {
 public:
  AxisFinder(const Shape& shape, std::int64_t n_groups, std::size_t n_weights, std::string_view where)
      : shape_(shape), n_groups_(n_groups), where_(where), strides_(shape.size()) {
    std::int64_t stride = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      if (shape[axis] < 1) refuse("has an extent below 1");
      strides_[axis] = stride;
      if (__builtin_mul_overflow(stride, shape[axis], &stride)) refuse("is too large");
    }
    if (static_cast<std::size_t>(stride) != n_weights) refuse(fmt::format("does not fit {} weights", n_weights));
    if (n_groups < 1) refuse(fmt::format("is split into {} groups", n_groups));
  }

  std::vector<Axis> find(WeightLayout layout) const {
    switch (layout) {
      case WeightLayout::ohwi: return want(4), grouped_output({axis(1), axis(2), axis(3)}, axis(0));
      case WeightLayout::hwc_depthwise: return want(4), depthwise();
      case WeightLayout::dhwio: return want(5), grouped_output({axis(0), axis(1), axis(2), axis(3)}, axis(4));
      case WeightLayout::oi: return want(2), grouped_output({kOne, kOne, axis(1)}, axis(0));
      case WeightLayout::io: return want(2), grouped_output({kOne, kOne, axis(0)}, axis(1));
      case WeightLayout::oihw: return spatial({axis(1)}, axis(0));
      case WeightLayout::iohw: return grouped_input();
    }
    return {};
  }

 private:
  static constexpr Axis kOne{1, 0};

  Axis axis(std::size_t i) const { return i < shape_.size() ? Axis{shape_[i], strides_[i]} : kOne; }

  void want(std::size_t rank) const {
    if (shape_.size() != rank) refuse(fmt::format("has rank {}; wanted {}", shape_.size(), rank));
  }

  /// `channels` split into groups, as the axes G and O (or G and I).
  std::pair<Axis, Axis> split(Axis channels) const {
    if (channels.extent % n_groups_ != 0) {
      refuse(fmt::format("has {} channels, no multiple of {} groups", channels.extent, n_groups_));
    }
    const std::int64_t each = channels.extent / n_groups_;
    return {{n_groups_, each * channels.stride}, {each, channels.stride}};
  }

  std::vector<Axis> grouped_output(std::vector<Axis> axes, Axis output) const {
    const auto [group, each] = split(output);
    axes.push_back(group);
    axes.push_back(each);
    return axes;
  }

  std::vector<Axis> depthwise() const {
    if (shape_[0] != 1) refuse("does not begin with 1");
    return grouped_output({axis(1), axis(2), kOne}, axis(3));
  }

  std::vector<Axis> taps() const {
    if (shape_.size() != 4 && shape_.size() != 5) refuse(fmt::format("has rank {}; wanted 4 or 5", shape_.size()));
    std::vector<Axis> axes;
    for (std::size_t i = 2; i < shape_.size(); ++i) axes.push_back(axis(i));
    return axes;
  }

  std::vector<Axis> spatial(const std::vector<Axis>& input, Axis output) const {
    std::vector<Axis> axes = taps();
    axes.insert(axes.end(), input.begin(), input.end());
    return grouped_output(std::move(axes), output);
  }

  /// The input channels carry the groups: [G * I, O, ...].
  std::vector<Axis> grouped_input() const {
    std::vector<Axis> axes = taps();
    const auto [group, each] = split(axis(0));
    axes.insert(axes.end(), {each, group, axis(1)});
    return axes;
  }

  [[noreturn]] void refuse(std::string_view why) const {
    fail(ErrorCode::bad_request, where_, fmt::format("E_SHAPE: weight shape {} {}", to_string(shape_), why));
  }

  const Shape& shape_;
  std::int64_t n_groups_;
  std::string_view where_;
  std::vector<std::int64_t> strides_;
};

}  // namespace

WeightOrder weight_order(WeightLayout layout, const Shape& shape, std::int64_t n_groups, std::size_t n_weights,
                         std::string_view where) {
  const std::vector<Axis> axes = AxisFinder(shape, n_groups, n_weights, where).find(layout);
  WeightOrder order;
  order.source = {0};
  for (const Axis& axis : axes) {
    order.shape.push_back(axis.extent);
    std::vector<std::size_t> finer;
    finer.reserve(order.source.size() * static_cast<std::size_t>(axis.extent));
    for (const std::size_t base : order.source) {
      for (std::int64_t i = 0; i < axis.extent; ++i) finer.push_back(base + static_cast<std::size_t>(i * axis.stride));
    }
    order.source = std::move(finer);
  }
  return order;
}

}  // namespace weightmill
