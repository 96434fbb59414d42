#include <algorithm>
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

class Fold final : public ConstantFold {
 public:
  Fold(const QuantizedChain& chain, FoldSemantics semantics)
      : chain_(chain),
        semantics_(semantics),
        code_type_(chain_code_type(chain, semantics)),
        quantizer_(chain.quantize, semantics, chain.quantize.weights.shape, 0),
        rule_(semantics, code_type_, {chain.arithmetic, semantics == FoldSemantics::openvino}),
        zero_index_(chain.zero_point.shape, chain.quantize.weights.shape) {
    if (chain.subtracts) zero_point_ = ZeroPoint::kept;
    if (semantics == FoldSemantics::openvino)
      definition_.emplace(chain.quantize, FoldSemantics::strict, chain.quantize.weights.shape, 0);
  }

  DType code_type() const noexcept override { return code_type_; }
  const Shape& shape() const noexcept override { return chain_.quantize.weights.shape; }
  ZeroPoint zero_point() const noexcept override { return zero_point_; }

  void drop_zero_point_if_possible(const Reading& reading) {
    if (chain_.subtracts && every_code_can_drop_it(reading)) zero_point_ = ZeroPoint::dropped;
  }

  BlockResult codes(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const override {
    std::vector<std::int32_t> codes(count);
    BlockResult result = quantized(first, codes);
    const std::vector<float> defined = defined_codes(first, codes);
    if (zero_point_ == ZeroPoint::dropped) without_zero_points(first, codes);
    result.error = error_of(first, codes, defined);
    write_codes(code_type_, codes, semantics_ == FoldSemantics::mo2021, out);
    return result;
  }

  std::string objection(const BlockResult& result) const override {
    if (semantics_ == FoldSemantics::openvino) return "";
    if (result.saw_nan) return "NaN in weights";
    return result.saw_misfit ? fmt::format("a quantized value does not fit {}", name_of(code_type_)) : "";
  }

 private:
  BlockResult quantized(std::uint64_t first, std::span<std::int32_t> codes) const;
  std::int32_t code_of(float value, BlockResult& result) const;
  std::vector<float> defined_codes(std::uint64_t first, std::span<const std::int32_t> codes) const;
  StepError error_of(std::uint64_t first, std::span<const std::int32_t> stored, std::span<const float> defined) const;
  bool every_code_can_drop_it(const Reading& reading) const;
  bool without_zero_points(std::uint64_t first, std::span<std::int32_t> codes) const {
    const auto zero_at = [&](std::uint64_t i) { return number_at(chain_.zero_point, i); };
    return drop_zero_points(rule_, zero_index_, zero_at, first, codes);
  }

  QuantizedChain chain_;
  FoldSemantics semantics_;
  DType code_type_;
  Quantizer quantizer_;
  std::optional<Quantizer> definition_;  ///< where the semantics may give other codes than the graph itself
  ZeroPointRule rule_;
  BroadcastIndex zero_index_;
  ZeroPoint zero_point_ = ZeroPoint::none;
};

/// Convert cuts the fraction off. A value that is an integer but for rounding stands for that integer; OpenVINO knows
/// this only where there is a zero point, and rounds every value then.
float whole_value(float value, bool is_openvino, bool subtracts) {
  const float nearest = round_half_even(value);
  if (is_openvino) return subtracts ? nearest : std::trunc(value);
  return std::abs(value - nearest) <= 1e-4f * std::max(1.0f, std::abs(value)) ? nearest : std::trunc(value);
}

std::int32_t Fold::code_of(float value, BlockResult& result) const {
  const bool is_openvino = semantics_ == FoldSemantics::openvino;
  const float whole = whole_value(value, is_openvino, chain_.subtracts);
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

BlockResult Fold::quantized(std::uint64_t first, std::span<std::int32_t> codes) const {
  BlockResult result;
  std::vector<float> values(codes.size());
  result.saw_nan = quantizer_.values(first, semantics_ == FoldSemantics::openvino && chain_.subtracts, values);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = code_of(values[i], result);
  return result;
}

/// What the graph's Convert makes of the FakeQuantize's output. `codes`: what the fold makes of it.
std::vector<float> Fold::defined_codes(std::uint64_t first, std::span<const std::int32_t> codes) const {
  std::vector<float> defined(codes.size());
  if (!definition_) {
    std::ranges::transform(codes, defined.begin(), [](std::int32_t code) { return static_cast<float>(code); });
    return defined;
  }
  definition_->values(first, /*as_codes=*/false, defined);
  for (float& value : defined) value = whole_value(value, /*is_openvino=*/false, chain_.subtracts);
  return defined;
}

/// How far the chain's integers, with their zero point subtracted, are from what they were in the graph.
StepError Fold::error_of(std::uint64_t first, std::span<const std::int32_t> stored,
                         std::span<const float> defined) const {
  StepError error;
  const Precision grid = rule_.arithmetic();
  const double largest = std::ldexp(1.0, static_cast<int>(size_bits(code_type_)));
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (std::isnan(defined[i])) continue;  // there is no right code
    const float zero_point = chain_.subtracts ? number_at(chain_.zero_point, zero_index_.at(first + i)) : 0;
    const float code = static_cast<float>(stored[i]);
    const float after = zero_point_ == ZeroPoint::kept ? grid.round(code - zero_point) : code;
    const float before = chain_.subtracts ? grid.round(defined[i] - zero_point) : defined[i];
    error.add(std::abs(static_cast<double>(after) - before), step_bound(grid.unit_roundoff(), zero_point, largest));
  }
  return error;
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
    quantized(first, codes);
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
