#include "quantized_conv.h"

#include <array>
#include <cstddef>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

constexpr std::array<std::string_view, 9> kModeNames{"pow2_folded_i8", "pow2_folded_i16", "pow2_folded_i32",
                                                     "mult7_i8",       "mult7_i16",       "pow2_i8",
                                                     "pow2_i16",       "mult31_i8",       "mult31_i16"};
static_assert(kModeNames.size() == static_cast<std::size_t>(ConvMode::mult31_i16) + 1);

}  // namespace

std::string_view name_of(ConvMode mode) noexcept { return kModeNames[static_cast<std::size_t>(mode)]; }

ConvMode conv_mode_of(std::string_view name) {
  for (std::size_t i = 0; i < kModeNames.size(); ++i) {
    if (kModeNames[i] == name) return static_cast<ConvMode>(i);
  }
  fail(ErrorCode::bad_option, "mode",
       fmt::format("E_MODE: there is no mode '{}'; use one of {}", name, fmt::join(kModeNames, ", ")));
}

std::string_view name_of(Requant requant) noexcept {
  constexpr std::array<std::string_view, 3> kNames{"folded", "after_shift", "mult31"};
  return kNames[static_cast<std::size_t>(requant)];
}

}  // namespace weightmill
