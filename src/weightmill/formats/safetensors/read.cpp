#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include <weightmill/base/error.h>

#include "quote.h"
#include "safetensors.h"
#include "safetensors/header.h"

namespace weightmill {
namespace {

constexpr std::size_t kLengthBytes = 8;

/// The limit of the format's own library.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

std::uint64_t header_size(std::span<const std::uint8_t> file, std::string_view where) {
  if (file.size() < kLengthBytes)
    fail(ErrorCode::bad_file, where, fmt::format("has {} bytes, too few for a safetensors file", file.size()));
  std::uint64_t size = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) size = size << 8 | file[i];
  if (size > kMaxHeaderBytes || size > file.size() - kLengthBytes) {
    fail(ErrorCode::bad_file, where,
         fmt::format(
             "says that its header takes {} bytes, wanted at most {} and {}: is it a safetensors file, and whole?",
             size, file.size() - kLengthBytes, kMaxHeaderBytes));
  }
  if (size == 0 || file[kLengthBytes] != '{')
    fail(ErrorCode::bad_file, where, "has no header that begins with '{': it is no safetensors file");
  return size;
}

/// Bytes of all tensors cover the data without gap or overlap: the entries are in the order of their bytes.
void check_coverage(const std::vector<safetensors::HeaderEntry>& entries, std::uint64_t data_bytes,
                    std::string_view where) {
  std::uint64_t covered = 0;
  for (const auto& entry : entries) {
    const std::string named = fmt::format("{}: tensor {}", where, quote(entry.name));
    const std::uint64_t wanted = size_bytes(entry.shape, entry.dtype, named);
    if (entry.begin != covered)
      fail(ErrorCode::bad_file, named, fmt::format("begins at byte {} of the data, wanted {}", entry.begin, covered));
    if (entry.end < entry.begin || entry.end - entry.begin != wanted) {
      fail(ErrorCode::bad_file, named,
           fmt::format("takes bytes {} to {}, wanted {} bytes for {}", entry.begin, entry.end, wanted,
                       to_string(entry.shape)));
    }
    if (entry.end > data_bytes)
      fail(ErrorCode::bad_file, named,
           fmt::format("ends at byte {} of {}: the file is cut short", entry.end, data_bytes));
    covered = entry.end;
  }
  if (covered != data_bytes)
    fail(ErrorCode::bad_file, where, fmt::format("has {} bytes of data, its tensors take {}", data_bytes, covered));
}

}  // namespace

const SafetensorsTensor* Safetensors::find(std::string_view name) const noexcept {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Safetensors parse_safetensors(std::span<const std::uint8_t> file, std::string_view name) {
  const std::uint64_t size = header_size(file, name);
  safetensors::Header header = safetensors::read_header(file.subspan(kLengthBytes, size), name);
  const auto data = file.subspan(kLengthBytes + size);
  std::sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_coverage(header.entries, data.size(), name);
  Safetensors result;
  result.metadata = std::move(header.metadata);
  for (auto& entry : header.entries) {
    result.tensors.push_back({std::move(entry.name), entry.dtype, std::move(entry.shape),
                              data.subspan(entry.begin, entry.end - entry.begin)});
  }
  return result;
}

Safetensors read_safetensors(const std::filesystem::path& path) {
  auto file = std::make_shared<const MappedFile>(path);
  Safetensors result = parse_safetensors(file->bytes(), file->name());
  result.file = std::move(file);
  return result;
}

}  // namespace weightmill
