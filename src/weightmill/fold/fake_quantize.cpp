#include "fake_quantize.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <weightmill/base/parallel.h>

#include "broadcast.h"
#include "code_writer.h"
#include "limits_check.h"
#include "output_scales.h"
#include "quantizer.h"
#include "scale_rule.h"
#include "step_meter.h"
#include "zero_point.h"
#include "zero_point_walk.h"

namespace weightmill {
namespace {

/// Codes that one task of a scan works on.
constexpr std::uint64_t kScanBlock = 1 << 18;
/// Codes that go through all steps together; even, and small enough for the cache.
constexpr std::uint64_t kPiece = 1 << 15;

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
        scales_(operation, ScaleRule(semantics_, operation.type, operation.levels, range.low), affine_shape_),
        zero_rule_(semantics_, range.type, scales_.rule().judged()),
        affine_index_(affine_shape_, shape_) {
    if (differs_from_definition()) definition_.emplace(operation, FoldSemantics::strict, shape_, range.low);
  }

  DType code_type() const noexcept override { return range_.type; }
  const Shape& shape() const noexcept override { return shape_; }
  ZeroPoint zero_point() const noexcept override { return zero_point_; }
  const Shape& affine_shape() const noexcept override { return affine_shape_; }
  DType affine_type() const noexcept override { return operation_.type; }
  StepError error() const override { return spread_error_; }

  void decide_zero_point(const Reading& reading) { zero_point_ = decided_zero_point(reading); }
  /// Requires that the zero point is decided.
  void prepare_measuring();

  BlockResult codes(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const override;
  std::string objection(const BlockResult& result) const override;
  void scales(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const override;
  void zero_points(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const override;

 private:
  bool differs_from_definition() const;
  bool shifts_codes() const noexcept { return zero_point_ == ZeroPoint::dropped && has_shift_; }
  bool has_bytes() const noexcept { return size_bits(range_.type) <= 8; }
  std::int32_t widened(std::uint8_t code) const noexcept {
    return range_.low < 0 ? static_cast<std::int8_t>(code) : code;
  }
  ZeroPoint decided_zero_point(const Reading& reading);
  bool every_code_can_drop_it(const Reading& reading) const;
  bool take_in_zero_points(std::uint64_t first, std::span<std::int32_t> codes) const;
  void take_in_zero_points(std::uint64_t first, std::span<std::uint8_t> codes) const;
  bool wide_codes(const Quantizer& quantizer, std::uint64_t first, std::span<std::int32_t> codes) const;
  void byte_codes(std::uint64_t first, std::span<std::uint8_t> codes, BlockResult& result) const;
  void code_piece(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out, BlockResult& result) const;
  void wide_piece(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out, BlockResult& result) const;
  StepError error_of_spread_codes(const Shape& spread, const StepMeter& meter) const;

  FakeQuantize operation_;
  FoldSemantics semantics_;
  CodeRange range_;
  Shape shape_;
  Shape affine_shape_;
  Quantizer quantizer_;
  std::optional<Quantizer> definition_;  ///< where the semantics may give other codes than FakeQuantize's definition
  OutputScales scales_;
  ZeroPointRule zero_rule_;
  BroadcastIndex affine_index_;
  ZeroPoint zero_point_ = ZeroPoint::none;
  bool has_shift_ = false;          ///< a zero point is not 0 once rounded
  std::optional<StepMeter> meter_;  ///< unless codes are spread to several values
  StepError spread_error_;
};

bool Fold::differs_from_definition() const {
  if (semantics_ == FoldSemantics::strict) return false;
  if (semantics_ == FoldSemantics::mo2021 || operation_.type == DType::f16) return true;
  return operation_.input_low.shape != operation_.input_high.shape;
}

ZeroPoint Fold::decided_zero_point(const Reading& reading) {
  const std::int32_t highest = range_.low + static_cast<std::int32_t>(operation_.levels) - 1;
  const bool no_codes = count_of(shape_) == 0 && semantics_ != FoldSemantics::mo2021;  // each of them could drop it
  bool nothing = true, may_vanish = true, surely = true;
  for (std::uint64_t i = 0; i < scales_.size(); ++i) {
    const float zero_point = scales_[i].exact_zero_point;
    nothing = nothing && zero_rule_.is_nothing(zero_point);
    may_vanish = may_vanish && zero_rule_.may_vanish(zero_point);
    surely = surely && zero_rule_.surely_vanishes(zero_point, range_.low, highest);
    if (!nothing && !may_vanish && !no_codes) return ZeroPoint::kept;
    has_shift_ = has_shift_ || std::nearbyint(zero_point) != 0;
  }
  if (nothing) return ZeroPoint::none;
  if (no_codes) return ZeroPoint::dropped;
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
    if (!take_in_zero_points(first, codes)) all = false;
    reading.consumed(codes.size() * size_bits(operation_.weights.dtype) / 8);
  });
  return all;
}

bool Fold::take_in_zero_points(std::uint64_t first, std::span<std::int32_t> codes) const {
  const auto zero_at = [&](std::uint64_t i) { return scales_[i].exact_zero_point; };
  return drop_zero_points(zero_rule_, affine_index_, zero_at, first, codes);
}

void Fold::take_in_zero_points(std::uint64_t first, std::span<std::uint8_t> codes) const {
  std::vector<std::int32_t> wide(codes.size());
  std::ranges::transform(codes, wide.begin(), [&](std::uint8_t code) { return widened(code); });
  take_in_zero_points(first, wide);
  std::ranges::transform(wide, codes.begin(), [](std::int32_t code) { return static_cast<std::uint8_t>(code); });
}

/// Codes before a zero point is dropped, as `quantizer` makes them.
bool Fold::wide_codes(const Quantizer& quantizer, std::uint64_t first, std::span<std::int32_t> codes) const {
  if (!has_bytes()) return quantizer.wide_codes(first, codes);
  std::vector<std::uint8_t> bytes(codes.size());
  const bool saw_nan = quantizer.codes(first, bytes);
  std::ranges::transform(bytes, codes.begin(), [&](std::uint8_t code) { return widened(code); });
  return saw_nan;
}

BlockResult Fold::codes(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const {
  BlockResult result;
  for (std::uint64_t done = 0; done < count; done += kPiece) {
    const std::uint64_t n = std::min(kPiece, count - done);
    const auto piece = out.subspan(code_bytes(range_.type, done));
    has_bytes() ? code_piece(first + done, n, piece, result) : wide_piece(first + done, n, piece, result);
  }
  return result;
}

void Fold::code_piece(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out,
                      BlockResult& result) const {
  if (size_bits(range_.type) == 8) return byte_codes(first, out.first(count), result);
  std::vector<std::uint8_t> bytes(count);
  byte_codes(first, bytes, result);
  pack_nibbles(bytes, semantics_ == FoldSemantics::mo2021, out.data());
}

/// Codes as they are stored, but each in a byte of its own.
void Fold::byte_codes(std::uint64_t first, std::span<std::uint8_t> codes, BlockResult& result) const {
  result.saw_nan |= quantizer_.codes(first, codes);
  std::vector<std::uint8_t> definition;
  if (definition_) {
    definition.resize(codes.size());
    definition_->codes(first, definition);
  } else if (shifts_codes()) {
    definition.assign(codes.begin(), codes.end());
  }
  if (shifts_codes()) take_in_zero_points(first, codes);
  const std::span<const std::uint8_t> defined = definition.empty() ? codes : std::span(definition);
  if (meter_) meter_->add(first, codes, defined, result.error);
}

void Fold::wide_piece(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out,
                      BlockResult& result) const {
  std::vector<std::int32_t> codes(count), defined(count);
  result.saw_nan |= wide_codes(quantizer_, first, codes);
  if (definition_) wide_codes(*definition_, first, defined);
  if (!definition_) defined = codes;
  if (shifts_codes()) take_in_zero_points(first, codes);
  if (meter_) meter_->add(first, codes, defined, result.error);
  write_codes(range_.type, codes, semantics_ == FoldSemantics::mo2021, out);
}

std::string Fold::objection(const BlockResult& result) const {
  if (semantics_ == FoldSemantics::openvino) return "";
  if (result.saw_nan) return "NaN in weights";
  if (semantics_ != FoldSemantics::strict || !result.error.exceeds) return "";
  return fmt::format("dequantized values would be {:.3g} steps off, more than {:.3g}", result.error.max_steps,
                     result.error.bound_steps);
}

void Fold::prepare_measuring() {
  const StepMeter::Codes meaning{range_.low, static_cast<std::int32_t>(operation_.levels), zero_point_, shifts_codes()};
  const Shape spread = *broadcast_shapes(shape_, affine_shape_);
  if (count_of(spread) == count_of(shape_)) {
    meter_.emplace(scales_, affine_shape_, shape_, meaning);
  } else {
    spread_error_ = error_of_spread_codes(spread, StepMeter(scales_, affine_shape_, spread, meaning));
  }
}

/// Where output limits spread a code to several values, each of them is looked at.
StepError Fold::error_of_spread_codes(const Shape& spread, const StepMeter& meter) const {
  StepError error;
  const BroadcastIndex code_index(shape_, spread);
  for (std::uint64_t i = 0, n = count_of(spread); i < n; ++i) {
    std::int32_t stored = 0, defined = 0;
    const std::uint64_t at = code_index.at(i);
    wide_codes(quantizer_, at, {&stored, 1});
    defined = stored;
    if (definition_) wide_codes(*definition_, at, {&defined, 1});
    if (shifts_codes()) take_in_zero_points(at, std::span(&stored, 1));
    meter.add(i, std::span(&stored, 1), std::span(&defined, 1), error);
  }
  return error;
}

void Fold::scales(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const {
  const Precision& stored = scales_.rule().stored();
  for (std::uint64_t i = 0; i < count; ++i)
    stored.store(scales_[first + i].scale, out.data() + i * stored.size_bytes());
}

void Fold::zero_points(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const {
  const Precision& stored = scales_.rule().stored();
  for (std::uint64_t i = 0; i < count; ++i)
    stored.store(scales_[first + i].zero_point, out.data() + i * stored.size_bytes());
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
  fold->prepare_measuring();
  return fold;
}

}  // namespace weightmill
