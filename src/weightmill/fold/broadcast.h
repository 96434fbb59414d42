#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <weightmill/model/shape.h>

namespace weightmill {

/// The shape that numpy's rule gives for `a` with `b`, right-aligned; nothing where an extent differs and neither is 1.
std::optional<Shape> broadcast_shapes(const Shape& a, const Shape& b);

/// Where the elements of a tensor `own` are found for the elements of a tensor `target` that it is broadcast to.
///
/// An axis of `own` that `target` does not have, or has with extent 1, is read at its first index only.
class BroadcastIndex {
 public:
  BroadcastIndex(const Shape& own, const Shape& target);

  /// How many target elements in a row share one own element: flat indices [k run, (k + 1) run).
  std::uint64_t run() const noexcept { return run_; }

  /// After how many target elements the own elements repeat: at(flat) = at(flat % period()). At least 1.
  std::uint64_t period() const noexcept { return period_; }

  /// The own element of target element `flat`, both counted row-major.
  std::uint64_t at(std::uint64_t flat) const noexcept;

  /// The own elements of `out.size()` target elements from `first` on.
  void fill(std::uint64_t first, std::vector<std::uint64_t>& out) const;

 private:
  struct Axis {
    std::uint64_t extent;  ///< of the target, > 1
    std::uint64_t stride;  ///< in own elements; 0: broadcast
  };
  std::vector<Axis> axes_;  ///< innermost first; neighbours that walk alike are one
  std::uint64_t run_ = 1;
  std::uint64_t period_ = 1;
};

}  // namespace weightmill
