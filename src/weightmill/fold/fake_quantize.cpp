#include "fake_quantize.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <weightmill/base/parallel.h>

#include "broadcast.h"
#include "code_writer.h"
#include "limits_check.h"
#include "quantizer.h"
#include "scale_rule.h"
#include "zero_point.h"
#include "zero_point_walk.h"

namespace weightmill {
namespace {

/// Codes that one task of a scan works on.
constexpr std::uint64_t kScanBlock = 1 << 18;
/// Codes that are worked on together one by one; even, and small enough for the cache.
constexpr std::uint64_t kPiece = 1 << 13;
/// Above this many (limits x codes) the error is bounded by its end points, not measured at each code.
constexpr std::uint64_t kMaxMeasured = 1 << 16;

struct CodeRange {
  DType type;
  std::int32_t low;
};

DType integer_type(std::int64_t levels, bool is_signed) {
  if (levels > 256) return is_signed ? DType::i16 : DType::u16;
  if (levels > 16) return is_signed ? DType::i8 : DType::u8;
  return is_signed ? DType::i4 : DType::u4;
}

bool all_outputs_non_negative(const FakeQuantize& operation) {
  for (const Numbers* limit : {&operation.output_low, &operation.output_high}) {
    for (std::uint64_t i = 0; i < limit->size; ++i) {
      if (!(number_at(*limit, i) >= 0)) return false;
    }
  }
  return true;
}

CodeRange code_range(const FakeQuantize& operation, FoldSemantics semantics) {
  const bool is_signed = semantics == FoldSemantics::mo2021 || !all_outputs_non_negative(operation);
  const auto low = is_signed ? -static_cast<std::int32_t>(operation.levels / 2) : 0;
  return {integer_type(operation.levels, is_signed), low};
}

Shape codes_shape(const FakeQuantize& operation, FoldSemantics semantics) {
  if (semantics == FoldSemantics::openvino) return operation.weights.shape;
  const auto with_low = broadcast_shapes(operation.weights.shape, operation.input_low.shape);
  return *broadcast_shapes(*with_low, operation.input_high.shape);
}

/// The Python pass makes a one-element vector of a scalar.
Shape affine_shape(const FakeQuantize& operation, FoldSemantics semantics) {
  const Shape shape = *broadcast_shapes(operation.output_low.shape, operation.output_high.shape);
  return semantics == FoldSemantics::mo2021 && shape.empty() ? Shape{1} : shape;
}

std::uint64_t count_of(const Shape& shape) { return n_elements(shape, "FakeQuantize"); }

class Fold final : public FakeQuantizeFold {
 public:
  Fold(const FakeQuantize& operation, const FoldOptions& options, const CodeRange& range)
      : operation_(operation),
        semantics_(options.semantics),
        range_(range),
        shape_(codes_shape(operation, semantics_)),
        affine_shape_(weightmill::affine_shape(operation, semantics_)),
        quantizer_(operation, semantics_, shape_, range.low),
        scale_rule_(semantics_, operation.type, operation.levels, range.low),
        zero_rule_(semantics_, range.type, scale_rule_.judged()),
        low_index_(operation.output_low.shape, affine_shape_),
        high_index_(operation.output_high.shape, affine_shape_),
        affine_index_(affine_shape_, shape_) {
    if (differs_from_definition()) definition_.emplace(operation, FoldSemantics::strict, shape_, range.low);
  }

  DType code_type() const noexcept override { return range_.type; }
  const Shape& shape() const noexcept override { return shape_; }
  ZeroPoint zero_point() const noexcept override { return zero_point_; }
  const Shape& affine_shape() const noexcept override { return affine_shape_; }
  DType affine_type() const noexcept override { return operation_.type; }
  StepError error() const override { return error_; }

  void decide_zero_point(const Reading& reading) { zero_point_ = decided_zero_point(reading); }
  void measure_error();

  BlockResult codes(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const override;
  std::string objection(const BlockResult& result) const override;
  void scales(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const override;
  void zero_points(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const override;

 private:
  std::uint64_t n_affine() const { return count_of(affine_shape_); }
  bool differs_from_definition() const;
  ScaleAndZero affine(std::uint64_t index) const;
  ZeroPoint decided_zero_point(const Reading& reading);
  bool every_code_can_drop_it(const Reading& reading) const;
  BlockResult checked_codes(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const;
  bool wide_codes(const Quantizer& quantizer, std::uint64_t first, std::span<std::int32_t> codes) const;
  double error_at(std::uint64_t affine_index, std::int32_t code, std::int32_t defined) const;
  double bound_at(const ScaleAndZero& affine) const;
  double measured_error(std::uint64_t affine_index) const;
  double error_of_ends(std::uint64_t affine_index) const;
  StepError difference(std::uint64_t first, std::span<const std::int32_t> codes) const;

  FakeQuantize operation_;
  FoldSemantics semantics_;
  CodeRange range_;
  Shape shape_;
  Shape affine_shape_;
  Quantizer quantizer_;
  std::optional<Quantizer> definition_;  ///< where the semantics may give other codes than FakeQuantize's definition
  ScaleRule scale_rule_;
  ZeroPointRule zero_rule_;
  BroadcastIndex low_index_;
  BroadcastIndex high_index_;
  BroadcastIndex affine_index_;
  ZeroPoint zero_point_ = ZeroPoint::none;
  bool shifts_codes_ = false;  ///< a dropped zero point is not 0 once rounded
  StepError error_;
};

bool Fold::differs_from_definition() const {
  if (semantics_ == FoldSemantics::strict) return false;
  if (semantics_ == FoldSemantics::mo2021 || operation_.type == DType::f16) return true;
  return operation_.input_low.shape != operation_.input_high.shape;
}

ScaleAndZero Fold::affine(std::uint64_t index) const {
  return scale_rule_(number_at(operation_.output_low, low_index_.at(index)),
                     number_at(operation_.output_high, high_index_.at(index)));
}

ZeroPoint Fold::decided_zero_point(const Reading& reading) {
  const std::int32_t highest = range_.low + static_cast<std::int32_t>(operation_.levels) - 1;
  bool nothing = true, may_vanish = true, surely = true;
  for (std::uint64_t i = 0, n = n_affine(); i < n; ++i) {
    const float zero_point = affine(i).exact_zero_point;
    nothing = nothing && zero_rule_.is_nothing(zero_point);
    may_vanish = may_vanish && zero_rule_.may_vanish(zero_point);
    surely = surely && zero_rule_.surely_vanishes(zero_point, range_.low, highest);
    if (!nothing && !may_vanish) return ZeroPoint::kept;
    shifts_codes_ = shifts_codes_ || std::nearbyint(zero_point) != 0;
  }
  if (nothing) return ZeroPoint::none;
  // Zero points that spread one code to several values cannot go into it; OpenVINO takes the first of them.
  if (semantics_ != FoldSemantics::openvino && broadcast_shapes(affine_shape_, shape_) != shape_)
    return ZeroPoint::kept;
  return surely || every_code_can_drop_it(reading) ? ZeroPoint::dropped : ZeroPoint::kept;
}

bool Fold::every_code_can_drop_it(const Reading& reading) const {
  const std::uint64_t n = count_of(shape_);
  std::atomic<bool> all{true};
  parallel_for((n + kScanBlock - 1) / kScanBlock, reading.jobs, [&](std::size_t block) {
    if (!all) return;
    const std::uint64_t first = block * kScanBlock;
    std::vector<std::int32_t> codes(std::min(kScanBlock, n - first));
    wide_codes(quantizer_, first, codes);
    const auto zero_at = [&](std::uint64_t i) { return affine(i).exact_zero_point; };
    if (!drop_zero_points(zero_rule_, affine_index_, zero_at, first, codes)) all = false;
    reading.consumed(codes.size() * size_bits(operation_.weights.dtype) / 8);
  });
  return all;
}

/// Codes before a zero point is dropped, as `quantizer` makes them.
bool Fold::wide_codes(const Quantizer& quantizer, std::uint64_t first, std::span<std::int32_t> codes) const {
  if (size_bits(range_.type) > 8) return quantizer.wide_codes(first, codes);
  std::vector<std::uint8_t> bytes(codes.size());
  const bool saw_nan = quantizer.codes(first, bytes);
  const bool is_signed = range_.low < 0;
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = is_signed ? static_cast<std::int8_t>(bytes[i]) : bytes[i];
  return saw_nan;
}

BlockResult Fold::codes(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const {
  const bool shifted = zero_point_ == ZeroPoint::dropped && shifts_codes_;
  BlockResult result;
  if (size_bits(range_.type) > 8 || shifted || definition_) {
    for (std::uint64_t done = 0; done < count; done += kPiece) {
      const std::uint64_t n = std::min(kPiece, count - done);
      result.merge(checked_codes(first + done, n, out.subspan(code_bytes(range_.type, done))));
    }
    return result;
  }
  if (size_bits(range_.type) == 8) {
    result.saw_nan = quantizer_.codes(first, out.first(count));
    return result;
  }
  std::vector<std::uint8_t> bytes(count);
  result.saw_nan = quantizer_.codes(first, bytes);
  pack_nibbles(bytes, semantics_ == FoldSemantics::mo2021, out.data());
  return result;
}

/// The codes one by one: what takes more than a kernel.
BlockResult Fold::checked_codes(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const {
  BlockResult result;
  std::vector<std::int32_t> codes(count);
  result.saw_nan = wide_codes(quantizer_, first, codes);
  if (definition_) result.error = difference(first, codes);
  if (zero_point_ == ZeroPoint::dropped) {
    drop_zero_points(
        zero_rule_, affine_index_, [&](std::uint64_t i) { return affine(i).exact_zero_point; }, first, codes);
  }
  write_codes(range_.type, codes, semantics_ == FoldSemantics::mo2021, out);
  return result;
}

/// The error of codes that are not the definition's.
StepError Fold::difference(std::uint64_t first, std::span<const std::int32_t> codes) const {
  std::vector<std::int32_t> defined(codes.size());
  wide_codes(*definition_, first, defined);
  StepError error;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == defined[i]) continue;
    const std::uint64_t at = affine_index_.at(first + i);
    error.add(error_at(at, codes[i], defined[i]), bound_at(affine(at)));
  }
  return error;
}

std::string Fold::objection(const BlockResult& result) const {
  return result.saw_nan && semantics_ != FoldSemantics::openvino ? "NaN in weights" : "";
}

/// |dequantized `code` - FakeQuantize's output for the code `defined`|, in steps.
double Fold::error_at(std::uint64_t affine_index, std::int32_t code, std::int32_t defined) const {
  const double low = number_at(operation_.output_low, low_index_.at(affine_index));
  const double high = number_at(operation_.output_high, high_index_.at(affine_index));
  const ScaleAndZero own = affine(affine_index);
  const double step = (high - low) / static_cast<double>(operation_.levels - 1);
  if (step == 0) return low == 0 ? 0 : std::numeric_limits<double>::infinity();
  const Precision& grid = scale_rule_.stored();
  float difference = static_cast<float>(code);
  if (zero_point_ == ZeroPoint::kept) difference = grid.round(difference - own.zero_point);
  if (zero_point_ == ZeroPoint::dropped) {
    const auto without = zero_rule_.without(code, own.exact_zero_point);
    if (!without) return 0;  // no weight has this code
    difference = static_cast<float>(*without);
  }
  const double value = grid.round(difference * own.scale);
  return std::abs(value - (low + step * (defined - range_.low))) / std::abs(step);
}

double Fold::bound_at(const ScaleAndZero& affine) const {
  const double largest =
      std::max(std::abs(range_.low), std::abs(range_.low + static_cast<std::int32_t>(operation_.levels) - 1));
  return kFoldTolerance + 8 * scale_rule_.stored().unit_roundoff() * (std::abs(affine.zero_point) + largest);
}

double Fold::measured_error(std::uint64_t affine_index) const {
  double worst = 0;
  for (std::int32_t n = 0; n < operation_.levels; ++n) {
    const double error = error_at(affine_index, range_.low + n, range_.low + n);
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

/// Without rounding the error is linear in the code, so it is largest at an end; the rounding of the dequantization's
/// two operations is added.
double Fold::error_of_ends(std::uint64_t affine_index) const {
  const double low = number_at(operation_.output_low, low_index_.at(affine_index));
  const double high = number_at(operation_.output_high, high_index_.at(affine_index));
  const ScaleAndZero own = affine(affine_index);
  const double step = (high - low) / static_cast<double>(operation_.levels - 1);
  if (step == 0) return low == 0 ? 0 : std::numeric_limits<double>::infinity();
  double zero_point = zero_point_ == ZeroPoint::kept ? own.zero_point : 0.0;
  if (zero_point_ == ZeroPoint::dropped) zero_point = std::nearbyint(own.exact_zero_point);
  double worst = 0;
  for (const std::int64_t n : {std::int64_t{0}, operation_.levels - 1}) {
    const double difference = static_cast<double>(range_.low + n) - zero_point;
    const double rounding = 2.001 * scale_rule_.stored().unit_roundoff() * std::abs(difference);
    const double error = std::abs(difference * own.scale - (low + step * static_cast<double>(n))) / std::abs(step);
    if (!(error + rounding <= worst)) worst = error + rounding;
  }
  return worst;
}

void Fold::measure_error() {
  const std::uint64_t n = n_affine();
  const bool may_wrap = semantics_ == FoldSemantics::openvino && range_.type == DType::i4;
  const bool each_code = may_wrap || n <= kMaxMeasured / static_cast<std::uint64_t>(operation_.levels);
  for (std::uint64_t i = 0; i < n; ++i) {
    error_.add(each_code ? measured_error(i) : error_of_ends(i), bound_at(affine(i)));
  }
}

void Fold::scales(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const {
  const Precision& stored = scale_rule_.stored();
  for (std::uint64_t i = 0; i < count; ++i) stored.store(affine(first + i).scale, out.data() + i * stored.size_bytes());
}

void Fold::zero_points(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const {
  const Precision& stored = scale_rule_.stored();
  for (std::uint64_t i = 0; i < count; ++i)
    stored.store(affine(first + i).zero_point, out.data() + i * stored.size_bytes());
}

}  // namespace

std::variant<std::unique_ptr<FakeQuantizeFold>, Left> plan_fake_quantize(const FakeQuantize& operation,
                                                                         const FoldOptions& options,
                                                                         const Reading& reading) {
  if (auto reason = objection_to_form(operation, options); !reason.empty()) return Left{reason};
  if (auto reason = objection_to_limits(operation, options.semantics, /*needs_scale=*/true, reading); !reason.empty()) {
    return Left{reason};
  }
  auto fold = std::make_unique<Fold>(operation, options, code_range(operation, options.semantics));
  fold->decide_zero_point(reading);
  fold->measure_error();
  const StepError error = fold->error();
  if (options.semantics == FoldSemantics::strict && error.exceeds) {
    return Left{fmt::format("dequantized values would be {:.3g} steps off, more than {:.3g}", error.max_steps,
                            error.bound_steps)};
  }
  return fold;
}

}  // namespace weightmill
