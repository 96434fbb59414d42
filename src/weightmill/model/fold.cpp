#include "fold.h"

#include <array>

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

constexpr std::array<std::string_view, 3> kSemantics{"strict", "openvino", "mo2021"};   // in the enumerators' order
constexpr std::array<std::string_view, 3> kOutcomes{"folded", "zero_point", "left"};

}  // namespace

std::string_view name_of(FoldSemantics semantics) noexcept { return kSemantics[static_cast<std::size_t>(semantics)]; }
std::string_view name_of(FoldOutcome outcome) noexcept { return kOutcomes[static_cast<std::size_t>(outcome)]; }

FoldSemantics fold_semantics(std::string_view word) {
  for (std::size_t i = 0; i < kSemantics.size(); ++i) {
    if (kSemantics[i] == word) return static_cast<FoldSemantics>(i);
  }
  fail(ErrorCode::bad_option, "semantics", fmt::format("'{}' is none of strict, openvino, mo2021", word));
}

}  // namespace weightmill
