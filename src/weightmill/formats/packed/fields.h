#pragma once

#include <cmath>
#include <concepts>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <weightmill/base/error.h>

#include "words.h"

namespace weightmill::formats {

/// Reads a JSON object that nobody vouches for: every look-up names its place ("manifest.layers[3].ohwi") when it fails.
class Fields {
 public:
  Fields(const nlohmann::json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json_.is_object()) fail(ErrorCode::bad_file, path_, "is no object");
  }
  const std::string& path() const noexcept { return path_; }

  Fields at(const char* key) const { return {value(key), path_of(key)}; }

  std::vector<Fields> list(const char* key) const {
    const auto& array = array_at(key);
    std::vector<Fields> fields;
    for (std::size_t i = 0; i < array.size(); ++i)
      fields.emplace_back(array[i], fmt::format("{}[{}]", path_of(key), i));
    return fields;
  }

  template <class T>
  T get(const char* key) const {
    return convert<T>(value(key), path_of(key));
  }

  template <class T>
  std::vector<T> numbers(const char* key) const {
    const auto& array = array_at(key);
    std::vector<T> values;
    values.reserve(array.size());
    for (std::size_t i = 0; i < array.size(); ++i)
      values.push_back(convert<T>(array[i], fmt::format("{}[{}]", path_of(key), i)));
    return values;
  }

  /// The enumerator whose name_of() stands there.
  template <class Enum>
  Enum word(const char* key) const {
    const auto text = get<std::string>(key);
    for (const Enum candidate : all_values<Enum>()) {
      if (name_of(candidate) == text) return candidate;
    }
    fail(ErrorCode::bad_file, path_of(key), fmt::format("unknown word '{}'", text));
  }

 private:
  std::string path_of(const char* key) const { return path_ + "." + key; }

  const nlohmann::json& value(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) fail(ErrorCode::bad_file, path_of(key), "is missing");
    return *found;
  }

  const nlohmann::json& array_at(const char* key) const {
    const auto& array = value(key);
    if (!array.is_array()) fail(ErrorCode::bad_file, path_of(key), "is no list");
    return array;
  }

  template <class T>
  static T convert(const nlohmann::json& json, const std::string& path) {
    if constexpr (std::same_as<T, bool>) {
      if (json.is_boolean()) return json.get<bool>();
    } else if constexpr (std::integral<T>) {
      if (json.is_number_unsigned() && std::in_range<T>(json.get<std::uint64_t>()))
        return static_cast<T>(json.get<std::uint64_t>());
      if (json.is_number_integer() && !json.is_number_unsigned() && std::in_range<T>(json.get<std::int64_t>()))
        return static_cast<T>(json.get<std::int64_t>());
    } else if constexpr (std::floating_point<T>) {
      if (json.is_number()) return static_cast<T>(json.get<double>());
    } else {
      if (json.is_string()) return json.get<std::string>();
    }
    fail(ErrorCode::bad_file, path, fmt::format("found {}, which does not fit", json.type_name()));
  }

  const nlohmann::json& json_;
  std::string path_;
};

}  // namespace weightmill::formats
