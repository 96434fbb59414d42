#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace weightmill::testkit {

/// Folder of the golden sets: $WEIGHTMILL_GOLDEN_DIR, else shared/golden beside the checkout. It may not exist.
std::filesystem::path golden_dir();

/// Folder of the real models: $WEIGHTMILL_MODELS_DIR, else shared/models beside the checkout. It may not exist.
std::filesystem::path models_dir();

/// One golden set: `<folder>/<set>.json`, with the blobs of `<set>.bin` that it points into.
class GoldenSet {
 public:
  /// The set, or nothing where it is not installed: the test then calls GTEST_SKIP() and says so.
  /// `set` is relative to golden_dir(), e.g. "ethosu/mlw_vectors".
  static std::optional<GoldenSet> open(const std::string& set);

  const nlohmann::json& index() const { return index_; }
  const nlohmann::json& cases() const { return index_.at("cases"); }
  /// The bytes a `{"off": …, "bytes": …}` entry points to.
  std::span<const std::uint8_t> blob(const nlohmann::json& entry) const;
  /// The same, read as little-endian int16.
  std::vector<std::int16_t> blob_i16(const nlohmann::json& entry) const;

 private:
  nlohmann::json index_;
  std::vector<std::uint8_t> bytes_;
};

/// A number written as a C99 hexadecimal float ("0x1.8p+0"), or a JSON number.
double to_double(const nlohmann::json& value);

}  // namespace weightmill::testkit
