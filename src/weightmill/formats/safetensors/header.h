#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weightmill/model/dtype.h>
#include <weightmill/model/shape.h>

namespace weightmill::safetensors {

/// What the header says of one tensor.
struct HeaderEntry {
  std::string name;
  DType dtype = DType::u8;
  Shape shape;
  std::uint64_t begin = 0, end = 0;  ///< of its bytes, counted from the end of the header
};

struct Header {
  std::map<std::string, std::string> metadata;
  std::vector<HeaderEntry> entries;  ///< in the header's order
};

/// Reads the JSON of a header, spaces behind it allowed. Nesting is three deep by the format and refused beyond.
/// Throws: bad_file if it is not of the format's form; unsupported for a type that DType does not know.
Header read_header(std::span<const std::uint8_t> json, std::string_view where);

}  // namespace weightmill::safetensors
