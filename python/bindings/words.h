#pragma once

#include <map>
#include <string_view>

#include <weightmill/base/named.h>
#include <weightmill/codec/codec.h>

/// weightmill::named() for words that are written where they are needed.
template <class T>
T named(std::string_view what, std::string_view name, const std::map<std::string_view, T>& known) {
  return weightmill::named(what, name, known);
}

inline weightmill::mlw::Effort effort_named(std::string_view name) {
  return weightmill::named("effort", name, weightmill::mlw::kEffortNames);
}
inline weightmill::mlw::Forms forms_named(std::string_view name) {
  return weightmill::named("forms", name, weightmill::mlw::kFormsNames);
}
