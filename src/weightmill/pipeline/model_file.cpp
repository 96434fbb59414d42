#include "model_file.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <weightmill/base/mapped_file.h>

namespace weightmill {

bool is_xml(const std::filesystem::path& path) {
  const MappedFile file(path);
  auto bytes = file.bytes();
  constexpr std::array<std::uint8_t, 3> kByteOrderMark{0xef, 0xbb, 0xbf};
  if (bytes.size() >= kByteOrderMark.size() && std::equal(kByteOrderMark.begin(), kByteOrderMark.end(), bytes.begin()))
    bytes = bytes.subspan(kByteOrderMark.size());
  const auto is_blank = [](std::uint8_t byte) { return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n'; };
  const auto first = std::ranges::find_if_not(bytes, is_blank);
  return first != bytes.end() && *first == '<';
}

bool is_tflite(const std::filesystem::path& path) {
  const MappedFile file(path);
  constexpr std::string_view kIdentifier = "TFL3";
  const auto bytes = file.bytes();
  return bytes.size() >= 8 && std::equal(kIdentifier.begin(), kIdentifier.end(), bytes.begin() + 4);
}

}  // namespace weightmill
