#include "packed.h"

namespace weightmill {
namespace {

/// Names in the enumerators' order.
template <std::size_t N, class Enum>
std::string_view look_up(const std::array<std::string_view, N>& names, Enum value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? names[index] : std::string_view("unknown");
}

constexpr std::array<std::string_view, 3> kFamilies{"u55", "u65", "u85"};
constexpr std::array<std::string_view, 3> kTraversals{"depth_first", "part_kernel_first", "depthwise"};
constexpr std::array<std::string_view, 3> kBlockTypes{"convolution", "depthwise", "vector_product"};
constexpr std::array<std::string_view, 4> kStreamFormats{"standard", "sparse", "fast", "fast_sparse"};
constexpr std::array<std::string_view, 3> kScalingRules{"2020", "vela5", "regor"};
constexpr std::array<std::string_view, 3> kRecordFormats{"bias40_scale32", "bias32_scale31", "bias48_scale15"};

}  // namespace

std::string_view name_of(NpuFamily family) noexcept { return look_up(kFamilies, family); }
std::string_view name_of(Traversal traversal) noexcept { return look_up(kTraversals, traversal); }
std::string_view name_of(NpuBlockType type) noexcept { return look_up(kBlockTypes, type); }
std::string_view name_of(StreamFormat format) noexcept { return look_up(kStreamFormats, format); }
std::string_view name_of(ScalingRule rule) noexcept { return look_up(kScalingRules, rule); }
std::string_view name_of(RecordFormat format) noexcept { return look_up(kRecordFormats, format); }

}  // namespace weightmill
