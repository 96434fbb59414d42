#include "limits_check.h"

#include <array>
#include <atomic>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include <weightmill/base/parallel.h>
#include <weightmill/kernels/fake_quantize.h>

#include "broadcast.h"

namespace weightmill {
namespace {

constexpr std::uint64_t kScanBlock = 1 << 18;

struct NamedLimit {
  const char* name;
  const Numbers* numbers;
};

std::array<NamedLimit, 4> limits_of(const FakeQuantize& operation) {
  return {{{"input_low", &operation.input_low},
           {"input_high", &operation.input_high},
           {"output_low", &operation.output_low},
           {"output_high", &operation.output_high}}};
}

std::string objection_to_levels(std::int64_t levels, bool fold_16_bit) {
  if (levels >= 3 && levels <= 256) return "";
  if (levels > 256 && levels <= 65536) {
    return fold_16_bit ? ""
                       : fmt::format("levels outside 3..256: {}; 16-bit codes are made only when asked for", levels);
  }
  return fmt::format("levels outside 3..256: {}", levels);
}

bool any_nan(const Numbers& weights, const Reading& reading) {
  std::atomic<bool> found{false};
  parallel_for((weights.size + kScanBlock - 1) / kScanBlock, reading.jobs, [&](std::size_t block) {
    if (found) return;
    const std::uint64_t first = block * kScanBlock;
    std::vector<float> values(std::min(kScanBlock, weights.size - first));
    load_floats(weights, first, values);
    for (const float value : values) {
      if (std::isnan(value)) found = true;
    }
    reading.consumed(values.size() * size_bits(weights.dtype) / 8);
  });
  return found;
}

std::string objection_to_values(const FakeQuantize& operation) {
  for (const auto& [name, numbers] : limits_of(operation)) {
    for (std::uint64_t i = 0; i < numbers->size; ++i) {
      const float value = number_at(*numbers, i);
      if (std::isnan(value)) return fmt::format("NaN in {}", name);
      if (std::isinf(value)) return fmt::format("Inf in {}", name);
    }
  }
  return "";
}

/// Calls body(low, high) for all pairs that broadcasting makes, until it returns false.
template <class Body>
bool for_each_pair(const Numbers& low, const Numbers& high, const Body& body) {
  const Shape shape = *broadcast_shapes(low.shape, high.shape);
  const BroadcastIndex low_index(low.shape, shape), high_index(high.shape, shape);
  for (std::uint64_t i = 0, n = n_elements(shape, "FakeQuantize"); i < n; ++i) {
    if (!body(number_at(low, low_index.at(i)), number_at(high, high_index.at(i)))) return false;
  }
  return true;
}

std::string objection_to_ranges(const FakeQuantize& operation) {
  const auto is_finite = [](float low, float high) { return std::isfinite(high - low); };
  if (for_each_pair(operation.input_low, operation.input_high, is_finite) &&
      for_each_pair(operation.output_low, operation.output_high, is_finite)) {
    return "";
  }
  return "range overflows f32";
}

std::string objection_to_scales(const FakeQuantize& operation) {
  const auto steps = static_cast<float>(operation.levels - 1);
  const auto keeps_value = [&](float low, float high) { return (high - low) / steps != 0 || (low == 0 && high == 0); };
  if (for_each_pair(operation.output_low, operation.output_high, keeps_value)) return "";
  return "zero scale with non-zero constant output: fold would lose the value";
}

std::string strict_objection(const FakeQuantize& operation, bool needs_scale) {
  if (auto reason = objection_to_values(operation); !reason.empty()) return reason;
  if (auto reason = objection_to_ranges(operation); !reason.empty()) return reason;
  return needs_scale ? objection_to_scales(operation) : "";
}

/// The Python pass fails where a step is no integer; of these cases only an input range of infinite width is one.
std::string mo2021_objection(const FakeQuantize& operation) {
  const auto is_finite = [](float low, float high) { return !std::isinf(high - low); };
  return for_each_pair(operation.input_low, operation.input_high, is_finite) ? "" : "range overflows f32";
}

/// What limits may make of the weights by broadcasting: real ones do not, hostile ones would not end.
constexpr std::uint64_t kMaxSpread = 1 << 16;

bool spreads_too_far(const Shape& shape, std::uint64_t n_weights) {
  std::uint64_t n = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(n, static_cast<std::uint64_t>(extent), &n)) return true;
  }
  return n > kMaxSpread && n / 4 > n_weights;
}

std::string objection_to_shapes(const FakeQuantize& operation) {
  Shape shape = operation.weights.shape;
  for (const auto& [name, numbers] : limits_of(operation)) {
    if (numbers->dtype != operation.type) {
      return fmt::format("{} is {}, not {}", name, name_of(numbers->dtype), name_of(operation.type));
    }
    const auto wider = broadcast_shapes(shape, numbers->shape);
    if (!wider)
      return fmt::format("{} {} does not broadcast with {}", name, to_string(numbers->shape), to_string(shape));
    shape = *wider;
  }
  if (spreads_too_far(shape, operation.weights.size)) {
    return fmt::format("the limits spread {} weights to {}", operation.weights.size, to_string(shape));
  }
  return "";
}

}  // namespace

std::string objection_to_form(const FakeQuantize& operation, const FoldOptions& options) {
  if (auto reason = objection_to_levels(operation.levels, options.fold_16_bit); !reason.empty()) return reason;
  const bool known = operation.type == DType::f32 || operation.type == DType::f16 || operation.type == DType::bf16;
  if (!known) return fmt::format("computes in {}, not in float32, float16 or bfloat16", name_of(operation.type));
  if (options.semantics == FoldSemantics::mo2021 && operation.type == DType::bf16) return "mo2021 knows no bfloat16";
  if (!can_load_floats(operation.weights.dtype))
    return fmt::format("weights of type {}", name_of(operation.weights.dtype));
  return objection_to_shapes(operation);
}

std::string objection_to_limits(const FakeQuantize& operation, FoldSemantics semantics, bool needs_scale,
                                const Reading& reading) {
  if (semantics == FoldSemantics::openvino) return "";
  const std::string reason =
      semantics == FoldSemantics::strict ? strict_objection(operation, needs_scale) : mo2021_objection(operation);
  if (reason.empty()) return "";  // a NaN among the weights shows while they are written
  return any_nan(operation.weights, reading) ? "NaN in weights" : reason;
}

}  // namespace weightmill
