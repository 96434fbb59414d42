#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <weightmill/base/parallel.h>
#include <weightmill/base/rounding.h>

#include "broadcast.h"
#include "code_writer.h"
#include "fake_quantize.h"
#include "limits_check.h"
#include "quantizer.h"
#include "step_meter.h"
#include "zero_point.h"
#include "zero_point_walk.h"

namespace weightmill {
namespace {

constexpr std::uint64_t kScanBlock = 1 << 18;
/// Elements that go through all steps together.
constexpr std::uint64_t kPiece = 1 << 14;
/// From so many neighbours with the same output limits on, a table of their values costs less than it saves.
constexpr std::uint64_t kLongRun = 512;

bool outputs_non_negative(const FakeQuantize& operation) {
  for (const Numbers* limit : {&operation.output_low, &operation.output_high}) {
    for (std::uint64_t i = 0; i < limit->size; ++i) {
      if (!(number_at(*limit, i) >= 0)) return false;
    }
  }
  return true;
}

/// OpenVINO makes the codes unsigned, whatever the graph asked for, where it looks at a zero point.
DType chain_code_type(const QuantizedChain& chain, FoldSemantics semantics) {
  if (semantics != FoldSemantics::openvino || !chain.subtracts || !outputs_non_negative(chain.quantize))
    return chain.code_type;
  if (chain.code_type == DType::i8) return DType::u8;
  return chain.code_type == DType::i4 ? DType::u4 : chain.code_type;
}

/// How far rounding in float32 may take a FakeQuantize's output from the integer that it stands for: some units in the
/// last place of its limits. The same for all codes of 8 bits.
float tolerance_of(const FakeQuantize& operation) {
  float low = 0, high = 0;
  for (std::uint64_t i = 0; i < operation.output_low.size; ++i)
    low = std::max(low, std::abs(number_at(operation.output_low, i)));
  for (std::uint64_t i = 0; i < operation.output_high.size; ++i)
    high = std::max(high, std::abs(number_at(operation.output_high, i)));
  return std::clamp(0x1p-22f * (low + high), 1e-4f, 0.25f);
}

/// Convert cuts the fraction off. A value that is an integer but for rounding stands for that integer; OpenVINO knows
/// this only where there is a zero point, and rounds every value then.
float whole_value(float value, float tolerance, bool is_openvino, bool subtracts) {
  const float nearest = round_half_even(value);
  if (is_openvino) return subtracts ? nearest : std::trunc(value);
  return std::abs(value - nearest) <= tolerance ? nearest : std::trunc(value);
}

/// The whole numbers that a chain's Convert makes of a FakeQuantize's output.
class WholeValues {
 public:
  WholeValues(const QuantizedChain& chain, FoldSemantics semantics)
      : operation_(chain.quantize),
        is_openvino_(semantics == FoldSemantics::openvino),
        subtracts_(chain.subtracts),
        tolerance_(tolerance_of(operation_)),
        quantizer_(operation_, semantics, operation_.weights.shape, 0),
        low_index_(operation_.output_low.shape, operation_.weights.shape),
        high_index_(operation_.output_high.shape, operation_.weights.shape) {
    const bool long_runs = std::min(low_index_.run(), high_index_.run()) >= kLongRun ||
                           (operation_.output_low.size == 1 && operation_.output_high.size == 1);
    uses_tables_ = long_runs && quantizer_.codes_are_steps(as_codes());
  }

  /// Of elements [first, first + out.size()); NaN where the FakeQuantize gives NaN. Returns whether a step was NaN.
  bool fill(std::uint64_t first, std::span<float> out) const {
    if (uses_tables_ && fill_from_tables(first, out)) return false;
    const bool saw_nan = quantizer_.values(first, as_codes(), out);
    for (float& value : out) value = whole(value);
    return saw_nan;
  }

 private:
  /// By step.
  using Table = std::array<float, 256>;

  bool as_codes() const noexcept { return is_openvino_ && subtracts_; }
  float whole(float value) const { return whole_value(value, tolerance_, is_openvino_, subtracts_); }
  bool fill_from_tables(std::uint64_t first, std::span<float> out) const;
  bool make_table(float low, float high, Table& table) const;

  FakeQuantize operation_;
  bool is_openvino_, subtracts_;
  float tolerance_;
  Quantizer quantizer_;
  BroadcastIndex low_index_, high_index_;
  bool uses_tables_ = false;
};

/// Returns false where a weight beyond the input limits has another value than the outermost step.
bool WholeValues::make_table(float low, float high, Table& table) const {
  const auto levels = static_cast<std::size_t>(operation_.levels);
  for (std::size_t n = 0; n < levels; ++n)
    table[n] = whole(quantizer_.value_of(static_cast<float>(n), low, high, as_codes()));
  const Precision grid{operation_.type, is_openvino_};
  return table[0] == whole(grid.round(low)) && table[levels - 1] == whole(grid.round(high));
}

/// Returns false where that cannot be done.
bool WholeValues::fill_from_tables(std::uint64_t first, std::span<float> out) const {
  std::vector<std::uint8_t> steps(out.size());
  if (quantizer_.codes(first, steps)) return false;
  Table table{};
  const bool one = operation_.output_low.size == 1 && operation_.output_high.size == 1;
  for (std::size_t i = 0; i < out.size();) {
    const std::uint64_t flat = first + i;
    const std::uint64_t left_low = low_index_.run() - flat % low_index_.run();
    const std::uint64_t left_high = high_index_.run() - flat % high_index_.run();
    const std::uint64_t run = one ? out.size() : std::min(left_low, left_high);
    const float low = number_at(operation_.output_low, low_index_.at(flat));
    if (!make_table(low, number_at(operation_.output_high, high_index_.at(flat)), table)) return false;
    const std::size_t end = i + std::min<std::uint64_t>(run, out.size() - i);
    for (; i < end; ++i) out[i] = table[steps[i]];
  }
  return true;
}

class Fold final : public ConstantFold {
 public:
  Fold(const QuantizedChain& chain, FoldSemantics semantics)
      : chain_(chain),
        semantics_(semantics),
        code_type_(chain_code_type(chain, semantics)),
        values_(chain, semantics),
        rule_(semantics, code_type_, {chain.arithmetic, semantics == FoldSemantics::openvino}),
        zero_index_(chain.zero_point.shape, chain.quantize.weights.shape) {
    if (chain.subtracts) zero_point_ = ZeroPoint::kept;
    if (semantics == FoldSemantics::openvino) definition_.emplace(chain, FoldSemantics::strict);
    for (std::uint64_t i = 0; chain.subtracts && i < chain.zero_point.size; ++i)
      bound_steps_ = std::max(bound_steps_, bound_at(number_at(chain.zero_point, i)));
  }

  DType code_type() const noexcept override { return code_type_; }
  const Shape& shape() const noexcept override { return chain_.quantize.weights.shape; }
  ZeroPoint zero_point() const noexcept override { return zero_point_; }

  void drop_zero_point_if_possible(const Reading& reading) {
    if (chain_.subtracts && every_code_can_drop_it(reading)) zero_point_ = ZeroPoint::dropped;
  }

  BlockResult codes(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const override {
    BlockResult result;
    for (std::uint64_t done = 0; done < count; done += kPiece) {
      const std::uint64_t n = std::min(kPiece, count - done);
      code_piece(first + done, n, out.subspan(code_bytes(code_type_, done)), result);
    }
    return result;
  }

  std::string objection(const BlockResult& result) const override {
    if (semantics_ == FoldSemantics::openvino) return "";
    if (result.saw_nan) return "NaN in weights";
    return result.saw_misfit ? fmt::format("a quantized value does not fit {}", name_of(code_type_)) : "";
  }

 private:
  void code_piece(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out, BlockResult& result) const;
  void quantized(std::uint64_t first, std::span<float> whole, std::span<std::int32_t> codes, BlockResult& result) const;
  std::int32_t code_of(float whole, BlockResult& result) const;
  double bound_at(float zero_point) const {
    const double largest = std::ldexp(1.0, static_cast<int>(size_bits(code_type_)));
    return step_bound(rule_.arithmetic().unit_roundoff(), zero_point, largest);
  }
  void add_error(std::uint64_t first, std::span<const std::int32_t> stored, std::span<const float> defined,
                 StepError& error) const;
  bool every_code_can_drop_it(const Reading& reading) const;
  bool without_zero_points(std::uint64_t first, std::span<std::int32_t> codes) const {
    const auto zero_at = [&](std::uint64_t i) { return number_at(chain_.zero_point, i); };
    return drop_zero_points(rule_, zero_index_, zero_at, first, codes);
  }

  QuantizedChain chain_;
  FoldSemantics semantics_;
  DType code_type_;
  WholeValues values_;
  std::optional<WholeValues> definition_;  ///< where the semantics may give other codes than the graph itself
  ZeroPointRule rule_;
  BroadcastIndex zero_index_;
  ZeroPoint zero_point_ = ZeroPoint::none;
  double bound_steps_ = kFoldTolerance;
};

std::int32_t Fold::code_of(float whole, BlockResult& result) const {
  if (!(std::abs(whole) < 0x1p31f)) {
    result.saw_misfit = true;
    return 0;
  }
  const auto code = static_cast<std::int32_t>(whole);
  if (size_bits(code_type_) == 32) return code;
  if (code >= lowest_code(code_type_) && code <= highest_code(code_type_)) return code;
  result.saw_misfit = true;  // wraps, as OpenVINO does
  const std::int32_t span = std::int32_t{1} << size_bits(code_type_);
  const std::int32_t low_bits = code & (span - 1);
  return low_bits > highest_code(code_type_) ? low_bits - span : low_bits;
}

/// `whole`: what the codes were made of.
void Fold::quantized(std::uint64_t first, std::span<float> whole, std::span<std::int32_t> codes,
                     BlockResult& result) const {
  result.saw_nan |= values_.fill(first, whole);
  // 32-bit limits are no float32, so those codes all take the careful way.
  const bool narrow = size_bits(code_type_) < 32;
  const float lowest = narrow ? static_cast<float>(lowest_code(code_type_)) : 0;
  const float highest = narrow ? static_cast<float>(highest_code(code_type_)) : -1;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const bool fits = whole[i] >= lowest && whole[i] <= highest;
    codes[i] = fits ? static_cast<std::int32_t>(whole[i]) : code_of(whole[i], result);
  }
}

void Fold::code_piece(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out,
                      BlockResult& result) const {
  std::vector<float> whole(count);
  std::vector<std::int32_t> codes(count);
  quantized(first, whole, codes, result);
  if (definition_) definition_->fill(first, whole);
  if (zero_point_ == ZeroPoint::dropped) without_zero_points(first, codes);
  add_error(first, codes, whole, result.error);
  write_codes(code_type_, codes, semantics_ == FoldSemantics::mo2021, out);
}

/// How far the chain's integers, with their zero point subtracted, are from what they were in the graph.
/// `defined`: what the graph's Convert gives.
void Fold::add_error(std::uint64_t first, std::span<const std::int32_t> stored, std::span<const float> defined,
                     StepError& error) const {
  error.bound_steps = bound_steps_;
  if (!definition_ && zero_point_ != ZeroPoint::dropped) return;  // they are the graph's own
  const Precision grid = rule_.arithmetic();
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const float code = static_cast<float>(stored[i]);
    if (std::isnan(defined[i])) continue;  // there is no right code
    if (code == defined[i] && zero_point_ != ZeroPoint::dropped) continue;
    const float zero_point = chain_.subtracts ? number_at(chain_.zero_point, zero_index_.at(first + i)) : 0;
    const float after = zero_point_ == ZeroPoint::kept ? grid.round(code - zero_point) : code;
    const float before = chain_.subtracts ? grid.round(defined[i] - zero_point) : defined[i];
    error.add(std::abs(static_cast<double>(after) - before), bound_at(zero_point));
  }
}

bool Fold::every_code_can_drop_it(const Reading& reading) const {
  if (semantics_ != FoldSemantics::openvino && broadcast_shapes(chain_.zero_point.shape, shape()) != shape())
    return false;
  for (std::uint64_t i = 0; i < chain_.zero_point.size; ++i) {
    if (!rule_.may_vanish(number_at(chain_.zero_point, i))) return false;
  }
  const std::uint64_t n = chain_.quantize.weights.size;
  std::atomic<bool> all{true};
  parallel_for((n + kScanBlock - 1) / kScanBlock, reading.jobs, [&](std::size_t block) {
    if (!all) return;
    const std::uint64_t first = block * kScanBlock;
    std::vector<std::int32_t> codes(std::min(kScanBlock, n - first));
    std::vector<float> whole(codes.size());
    BlockResult ignored;
    quantized(first, whole, codes, ignored);
    if (!without_zero_points(first, codes)) all = false;
    reading.consumed(codes.size() * size_bits(chain_.quantize.weights.dtype) / 8);
  });
  return all;
}

std::string objection_to_chain(const QuantizedChain& chain, const FoldOptions& options) {
  FoldOptions any_levels = options;
  any_levels.fold_16_bit = true;
  FakeQuantize operation = chain.quantize;
  operation.levels = std::max<std::int64_t>(operation.levels, 3);  // 2 levels are fine here
  if (chain.quantize.levels < 2) return fmt::format("levels outside 2..65536: {}", chain.quantize.levels);
  if (auto reason = objection_to_form(operation, any_levels); !reason.empty()) return reason;
  const unsigned bits = size_bits(chain.code_type);
  if (!is_integer(chain.code_type) || (bits != 4 && bits != 8 && bits != 16 && bits != 32) ||
      chain.code_type == DType::u32) {
    return fmt::format("codes of type {}", name_of(chain.code_type));
  }
  const bool is_openvino = options.semantics == FoldSemantics::openvino;
  if (bits > 8 && is_openvino && chain.subtracts)
    return fmt::format("zero point of {} codes", name_of(chain.code_type));
  if (bits > 8 && !is_openvino && !(bits == 16 && options.fold_16_bit)) {
    return fmt::format("{} codes are made only when asked for", name_of(chain.code_type));
  }
  return "";
}

}  // namespace

std::variant<std::unique_ptr<ConstantFold>, Left> plan_quantized_chain(const QuantizedChain& chain,
                                                                       const FoldOptions& options,
                                                                       const Reading& reading) {
  if (auto reason = objection_to_chain(chain, options); !reason.empty()) return Left{reason};
  if (chain.subtracts && !can_load_floats(chain.zero_point.dtype)) {
    return Left{fmt::format("zero point of type {}", name_of(chain.zero_point.dtype))};
  }
  if (auto reason = objection_to_limits(chain.quantize, options.semantics, /*needs_scale=*/false, reading);
      !reason.empty()) {
    return Left{reason};
  }
  auto fold = std::make_unique<Fold>(chain, options.semantics);
  fold->drop_zero_point_if_possible(reading);
  return fold;
}

}  // namespace weightmill
