#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <weightmill/model/graph.h>

namespace weightmill {

/// What a file of a few bytes may make the reader allocate.
struct TfliteLimits {
  std::uint64_t dense_bytes = std::uint64_t{1} << 29;  ///< all sparse tensors of a file together, once densified
};

/// Whether `file` says that it is TFLite: 'TFL3' at bytes 4 to 7.
bool is_tflite(std::span<const std::uint8_t> file) noexcept;

/// Reads a TFLite file of schema version 3.  [docs/tflite.md]
///
/// `file`: the whole file, data behind the flatbuffer included; aligned to 8 bytes, as mapped files and allocated
/// memory are. It must outlive the result, whose constants, metadata and custom options are views of it; only sparse
/// tensors are densified into memory of their own.
/// `name` is how messages call the file.
/// Every tensor, operator, buffer and index is checked: what is returned is safe to walk.
/// Throws: bad_file if anything is outside its bounds, of a wrong size or count (names the tensor or operator, what was
/// found and what was wanted); unsupported for other schema versions, data in other files and sparse tensors beyond
/// `limits`.
Model parse_tflite(std::span<const std::uint8_t> file, std::string_view name, const TfliteLimits& limits = {});

}  // namespace weightmill
