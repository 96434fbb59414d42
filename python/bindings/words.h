#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/codec/codec.h>

/// The value that `name` stands for. Throws: bad_option if it is none of `known` (lists them).
template <class T>
T named(std::string_view what, std::string_view name, const std::map<std::string_view, T>& known) {
  if (const auto found = known.find(name); found != known.end()) return found->second;
  std::string all;
  for (const auto& [word, unused] : known) all += fmt::format("{}{}", all.empty() ? "" : ", ", word);
  weightmill::fail(weightmill::ErrorCode::bad_option, what, fmt::format("'{}' is not one of: {}", name, all));
}

template <class T, std::size_t kCount>
T named(std::string_view what, std::string_view name, const std::array<weightmill::mlw::Named<T>, kCount>& known) {
  std::map<std::string_view, T> words;
  for (const auto& word : known) words.emplace(word.name, word.value);
  return named<T>(what, name, words);
}

inline weightmill::mlw::Effort effort_named(std::string_view name) {
  return named("effort", name, weightmill::mlw::kEffortNames);
}
inline weightmill::mlw::Forms forms_named(std::string_view name) {
  return named("forms", name, weightmill::mlw::kFormsNames);
}
