#include "testkit/golden.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace weightmill::testkit {
namespace {

namespace fs = std::filesystem;

fs::path folder_from(const char* variable, const char* beside_checkout) {
  if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') return value;
  return fs::path(WEIGHTMILL_SOURCE_DIR).parent_path() / beside_checkout;
}

std::vector<std::uint8_t> read_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

fs::path golden_dir() { return folder_from("WEIGHTMILL_GOLDEN_DIR", "shared/golden"); }
fs::path models_dir() { return folder_from("WEIGHTMILL_MODELS_DIR", "shared/models"); }

std::optional<GoldenSet> GoldenSet::open(const std::string& set) {
  const fs::path json = golden_dir() / (set + ".json");
  if (!fs::exists(json)) return std::nullopt;
  GoldenSet result;
  result.index_ = nlohmann::json::parse(read_bytes(json));
  if (result.index_.contains("bin")) {
    result.bytes_ = read_bytes(json.parent_path() / result.index_.at("bin").get<std::string>());
  }
  return result;
}

std::span<const std::uint8_t> GoldenSet::blob(const nlohmann::json& entry) const {
  const auto offset = entry.at("off").get<std::size_t>();
  const auto size = entry.at("bytes").get<std::size_t>();
  if (offset > bytes_.size() || size > bytes_.size() - offset) throw std::runtime_error("golden blob outside its file");
  return std::span(bytes_).subspan(offset, size);
}

std::vector<std::int16_t> GoldenSet::blob_i16(const nlohmann::json& entry) const {
  const auto bytes = blob(entry);
  std::vector<std::int16_t> values(bytes.size() / 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int16_t>(static_cast<std::uint16_t>(bytes[2 * i] | bytes[2 * i + 1] << 8));
  }
  return values;
}

double to_double(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  const auto text = value.get<std::string>();
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size()) throw std::runtime_error("no number: " + text);
  return number;
}

}  // namespace weightmill::testkit
