#include "testkit/npz.h"

#include <fstream>
#include <iterator>
#include <regex>

namespace weightmill::testkit {
namespace {

/// A little-endian number of the file.
std::size_t field(std::span<const std::uint8_t> bytes, std::size_t offset, std::size_t n_bytes) {
  std::size_t value = 0;
  for (std::size_t i = 0; i < n_bytes; ++i) value |= std::size_t{bytes[offset + i]} << (8 * i);
  return value;
}

std::string match_of(const std::string& text, const char* pattern) {
  std::smatch match;
  if (!std::regex_search(text, match, std::regex(pattern))) throw std::runtime_error("npy header: " + text);
  return match[1];
}

std::vector<std::int64_t> extents_of(const std::string& tuple) {
  std::vector<std::int64_t> shape;
  const std::regex number("[0-9]+");
  for (std::sregex_iterator i(tuple.begin(), tuple.end(), number), end; i != end; ++i) {
    shape.push_back(std::stoll(i->str()));
  }
  return shape;
}

/// numpy/lib/format.py: magic, version, header length (2 bytes in version 1, else 4), a Python dict, the data.
NpyArray parse_npy(std::span<const std::uint8_t> bytes) {
  const std::size_t length_bytes = bytes[6] == 1 ? 2 : 4;
  const std::size_t length = field(bytes, 8, length_bytes);
  const auto header_bytes = bytes.subspan(8 + length_bytes, length);
  const std::string header(header_bytes.begin(), header_bytes.end());
  return {match_of(header, "'descr': '[<|](..)'"), extents_of(match_of(header, "'shape': \\(([^)]*)\\)")),
          bytes.subspan(8 + length_bytes + length), match_of(header, "'fortran_order': (True|False)") == "True"};
}

}  // namespace

std::size_t NpyArray::column_major_index(std::size_t row_major_index) const {
  std::size_t index = 0;
  std::size_t stride = 1;
  for (const std::int64_t extent : shape) stride *= static_cast<std::size_t>(extent);
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const auto extent = static_cast<std::size_t>(shape[axis]);
    stride /= extent;
    index += row_major_index % extent * stride;
    row_major_index /= extent;
  }
  return index;
}

std::optional<NpzFile> NpzFile::open(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  NpzFile file;
  file.bytes_.assign(std::istreambuf_iterator<char>(in), {});
  const std::span<const std::uint8_t> bytes(file.bytes_);
  const std::size_t end = bytes.size() - 22;  // of the central directory: its end record, without a comment
  for (std::size_t at = field(bytes, end + 16, 4); at < end && field(bytes, at, 4) == 0x02014b50;) {
    if (field(bytes, at + 10, 2) != 0) throw std::runtime_error("npz: compressed");
    const auto name = bytes.subspan(at + 46, field(bytes, at + 28, 2));
    const std::size_t local = field(bytes, at + 42, 4);
    const std::size_t data = local + 30 + field(bytes, local + 26, 2) + field(bytes, local + 28, 2);
    file.arrays_.emplace(std::string(name.begin(), name.end() - 4),  // without ".npy"
                         parse_npy(bytes.subspan(data, field(bytes, at + 20, 4))));
    at += 46 + name.size() + field(bytes, at + 30, 2) + field(bytes, at + 32, 2);
  }
  return file;
}

}  // namespace weightmill::testkit
