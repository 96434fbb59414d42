#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "error.h"

namespace weightmill {

/// The value that `name` stands for. `known`: pairs of a word and its value; `more`: further words that the caller takes.
/// Throws: bad_option if it is none of them (lists them).
template <class Known>
auto named(std::string_view what, std::string_view name, const Known& known, std::string_view more = "") {
  std::string all;
  for (const auto& [word, value] : known) {
    if (word == name) return std::remove_cvref_t<decltype(value)>(value);
    all += fmt::format("{}{}", all.empty() ? "" : ", ", word);
  }
  fail(ErrorCode::bad_option, what, fmt::format("'{}' is not one of: {}{}", name, all, more));
}

}  // namespace weightmill
