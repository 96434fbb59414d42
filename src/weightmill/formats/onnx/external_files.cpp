#include "external_files.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

namespace fs = std::filesystem;

/// What the key-value pairs of a tensor say.
struct Entry {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

[[noreturn]] void refuse(const std::string& tensor, const std::string& why) {
  fail(ErrorCode::bad_file, "tensor " + tensor, why);
}

std::uint64_t parse_size(const std::string& tensor, const std::string& key, const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    refuse(tensor, fmt::format("external data: {} is '{}', not a number of bytes", key, text));
  }
  return value;
}

Entry parse_entry(const onnx_file::TensorProto& tensor) {
  Entry entry;
  for (const auto& pair : tensor.external_data()) {
    if (pair.key() == "location") entry.location = pair.value();
    if (pair.key() == "offset") entry.offset = parse_size(tensor.name(), "offset", pair.value());
    if (pair.key() == "length") entry.length = parse_size(tensor.name(), "length", pair.value());
  }
  if (entry.location.empty()) refuse(tensor.name(), "is external but names no file (location)");
  return entry;
}

/// Whether `file` is `directory` or something below it; both canonical.
bool lies_in(const fs::path& file, const fs::path& directory) {
  return std::mismatch(directory.begin(), directory.end(), file.begin(), file.end()).first == directory.end();
}

fs::path directory_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

}  // namespace

ExternalFiles::ExternalFiles(const fs::path& model) : directory_(directory_of(model)) {
  std::error_code error;
  for (const fs::path& directory : {directory_, fs::canonical(model, error).parent_path()}) {
    const fs::path canonical = fs::canonical(directory, error);
    if (!error) inside_.push_back(canonical);
  }
}

Payload ExternalFiles::open(const onnx_file::TensorProto& tensor, std::optional<std::uint64_t> needed_bytes) {
  const Entry entry = parse_entry(tensor);
  auto file = map_file(tensor.name(), entry.location);
  const std::uint64_t available = file->bytes().size();
  const std::uint64_t rest = entry.offset <= available ? available - entry.offset : 0;
  const std::uint64_t wanted = needed_bytes.value_or(entry.length.value_or(rest));
  if (entry.offset > available || wanted > rest) {
    refuse(tensor.name(),
           fmt::format("needs {} bytes at offset {}, but {} has {}", wanted, entry.offset, entry.location, available));
  }
  if (entry.length && *entry.length != wanted) {
    refuse(tensor.name(), fmt::format("needs {} bytes, but its external data has length {}", wanted, *entry.length));
  }
  return mapped_payload(std::move(file), static_cast<std::size_t>(entry.offset), static_cast<std::size_t>(wanted));
}

std::vector<fs::path> ExternalFiles::files() const {
  std::vector<fs::path> result;
  for (const auto& [location, file] : files_) result.emplace_back(file->name());
  return result;
}

std::uint64_t ExternalFiles::size_bytes() const {
  std::uint64_t size = 0;
  for (const auto& [location, file] : files_) size += file->bytes().size();
  return size;
}

std::shared_ptr<const MappedFile> ExternalFiles::map_file(const std::string& tensor, const std::string& location) {
  if (const auto found = files_.find(location); found != files_.end()) return found->second;
  if (location.find('\0') != std::string::npos) refuse(tensor, "the name of its external data holds a zero byte");
  const fs::path file = directory_ / location;
  check_inside(tensor, location, file);
  return files_[location] = std::make_shared<const MappedFile>(file);
}

void ExternalFiles::check_inside(const std::string& tensor, const std::string& location, const fs::path& file) const {
  const std::string outside =
      fmt::format("its external data {} lies outside the model's directory {}: refused", location, directory_.string());
  const fs::path relative = fs::path(location).lexically_normal();
  if (relative.is_absolute() || (!relative.empty() && *relative.begin() == "..")) refuse(tensor, outside);
  std::error_code error;
  const fs::path canonical = fs::canonical(file, error);
  if (error) refuse(tensor, fmt::format("its external data {} is not in {}", location, directory_.string()));
  const auto holds = [&](const fs::path& directory) { return lies_in(canonical, directory); };
  if (std::none_of(inside_.begin(), inside_.end(), holds)) refuse(tensor, outside);
}

}  // namespace weightmill
