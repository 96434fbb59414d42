#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>

#include <weightmill/codec/codec.h>

namespace weightmill::cli {

inline constexpr const char* kEffortHelp =
    "Encoder: fast, best or max make the smallest streams, reference and regor the bytes of Vela's two cores";
inline constexpr const char* kFormsHelp =
    "Forms of the format that fast, best and max use: proven (Vela's encoders use them too) or all";

template <class Value, std::size_t kCount>
std::map<std::string, Value> words_of(const std::array<mlw::Named<Value>, kCount>& names) {
  std::map<std::string, Value> words;
  for (const auto& [name, value] : names) words.emplace(name, value);
  return words;
}

inline const std::map<std::string, mlw::Effort> kEfforts = words_of(mlw::kEffortNames);
inline const std::map<std::string, mlw::Forms> kForms = words_of(mlw::kFormsNames);

}  // namespace weightmill::cli
