#include "weight_quantization.h"

#include <array>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/named.h>

namespace weightmill {
namespace {

constexpr std::array<std::pair<std::string_view, DType>, 4> kWeightTypes{
    {{"int8", DType::i8}, {"uint8", DType::u8}, {"int4", DType::i4}, {"uint4", DType::u4}}};

constexpr std::array<std::pair<std::string_view, ScaleMethod>, 3> kMethods{
    {{"auto", ScaleMethod::automatic}, {"minmax", ScaleMethod::minmax}, {"mse", ScaleMethod::mse}}};

}  // namespace

std::string_view name_of(ScaleMethod method) noexcept {
  return kMethods[static_cast<std::size_t>(method)].first;  // in the enumerators' order
}

ScaleMethod scale_method(std::string_view word) { return named("scale-method", word, kMethods); }

DType weight_type(std::string_view word) { return named("weight-type", word, kWeightTypes); }

void check(const WeightQuantizeOptions& options) {
  weight_type(name_of(options.weight_type));
  const std::int64_t block = options.block_size;
  if (block != 0 && (block < 16 || !std::has_single_bit(static_cast<std::uint64_t>(block)))) {
    fail(ErrorCode::bad_option, "block-size",
         fmt::format("{} is no power of two of at least 16, which is what engines take (0: no blocks)", block));
  }
  if (block != 0 && !options.per_channel)
    fail(ErrorCode::bad_option, "block-size", "blocks have scales of their own: leave per-tensor out");
  if (!(options.min_sqnr_db >= 0))
    fail(ErrorCode::bad_option, "min-sqnr", fmt::format("{} is no number of decibels above 0", options.min_sqnr_db));
}

std::string_view name_of(WeightOutcome outcome) noexcept {
  return outcome == WeightOutcome::quantized ? "quantized" : "left";
}

}  // namespace weightmill
