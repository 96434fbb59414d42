#include <atomic>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include <weightmill/base/parallel.h>

#include "broadcast.h"
#include "code_writer.h"
#include "fake_quantize.h"
#include "step_meter.h"
#include "zero_point.h"
#include "zero_point_walk.h"

namespace weightmill {
namespace {

constexpr std::uint64_t kScanBlock = 1 << 18;

class Fold final : public ConstantFold {
 public:
  Fold(const IntegerChain& chain, FoldSemantics semantics)
      : chain_(chain),
        rule_(semantics, chain.codes.dtype, {chain.arithmetic, semantics == FoldSemantics::openvino}),
        index_(chain.zero_point.shape, chain.codes.shape) {}

  DType code_type() const noexcept override { return chain_.codes.dtype; }
  const Shape& shape() const noexcept override { return chain_.codes.shape; }
  ZeroPoint zero_point() const noexcept override { return ZeroPoint::dropped; }
  std::string objection(const BlockResult&) const override { return ""; }

  BlockResult codes(std::uint64_t first, std::uint64_t count, std::span<std::uint8_t> out) const override {
    std::vector<std::int32_t> codes(count);
    without_zero_points(first, codes);
    write_codes(code_type(), codes, /*first_high=*/false, out);
    BlockResult result;
    result.error = error_of(first, codes);
    return result;
  }

  bool every_code_can(const Reading& reading) const;

 private:
  bool without_zero_points(std::uint64_t first, std::span<std::int32_t> codes) const {
    read_codes(chain_.codes.dtype, chain_.codes.bytes, first, codes);
    const auto zero_at = [&](std::uint64_t i) { return number_at(chain_.zero_point, i); };
    return drop_zero_points(rule_, index_, zero_at, first, codes);
  }

  StepError error_of(std::uint64_t first, std::span<const std::int32_t> stored) const;

  IntegerChain chain_;
  ZeroPointRule rule_;
  BroadcastIndex index_;
};

/// How far codes are from what the graph's Subtract gave.
StepError Fold::error_of(std::uint64_t first, std::span<const std::int32_t> stored) const {
  StepError error;
  std::vector<std::int32_t> before(stored.size());
  read_codes(chain_.codes.dtype, chain_.codes.bytes, first, before);
  const Precision grid = rule_.arithmetic();
  const double largest = std::ldexp(1.0, static_cast<int>(size_bits(chain_.codes.dtype)));
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const float zero_point = number_at(chain_.zero_point, index_.at(first + i));
    const double difference = grid.round(static_cast<float>(before[i]) - zero_point);
    error.add(std::abs(stored[i] - difference), step_bound(grid.unit_roundoff(), zero_point, largest));
  }
  return error;
}

bool Fold::every_code_can(const Reading& reading) const {
  for (std::uint64_t i = 0; i < chain_.zero_point.size; ++i) {
    if (!rule_.may_vanish(number_at(chain_.zero_point, i))) return false;
  }
  const std::uint64_t n = chain_.codes.size;
  std::atomic<bool> all{true};
  parallel_for((n + kScanBlock - 1) / kScanBlock, reading.jobs, [&](std::size_t block) {
    if (!all) return;
    const std::uint64_t first = block * kScanBlock;
    std::vector<std::int32_t> codes(std::min(kScanBlock, n - first));
    if (!without_zero_points(first, codes)) all = false;
    reading.consumed(code_bytes(chain_.codes.dtype, codes.size()));
  });
  return all;
}

bool has_codes(DType type) {
  return type == DType::i8 || type == DType::u8 || type == DType::i4 || type == DType::u4 || type == DType::i16 ||
         type == DType::u16;
}

}  // namespace

std::variant<std::unique_ptr<ConstantFold>, Left> plan_integer_chain(const IntegerChain& chain,
                                                                     const FoldOptions& options,
                                                                     const Reading& reading) {
  if (!has_codes(chain.codes.dtype)) return Left{fmt::format("codes of type {}", name_of(chain.codes.dtype))};
  if (!can_load_floats(chain.zero_point.dtype))
    return Left{fmt::format("zero point of type {}", name_of(chain.zero_point.dtype))};
  if (broadcast_shapes(chain.codes.shape, chain.zero_point.shape) != chain.codes.shape) {
    return Left{
        fmt::format("zero point {} spreads codes {}", to_string(chain.zero_point.shape), to_string(chain.codes.shape))};
  }
  auto fold = std::make_unique<Fold>(chain, options.semantics);
  if (!fold->every_code_can(reading)) return Left{"zero point is no integer that every code could take in"};
  return fold;
}

}  // namespace weightmill
