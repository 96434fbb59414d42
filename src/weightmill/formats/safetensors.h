#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weightmill/base/atomic_file.h>
#include <weightmill/base/mapped_file.h>
#include <weightmill/model/dtype.h>
#include <weightmill/model/shape.h>

namespace weightmill {

/// Takes the next bytes of a tensor's data.
using ByteSink = std::function<void(std::span<const std::uint8_t>)>;

/// A tensor to be written: its bytes are at hand in `data`, or come from `produce` when their turn is there.
struct SafetensorsSource {
  std::string name;  ///< UTF-8; any but "__metadata__"
  DType dtype = DType::u8;
  Shape shape;
  std::span<const std::uint8_t> data;                 ///< row-major, little endian; read if `produce` is empty
  std::function<void(const ByteSink&)> produce = {};  ///< gives all bytes, in as many pieces as it likes
};

/// Writes a safetensors file: header first, then the tensors' bytes without gaps, one producer after the other, so that
/// memory does not grow with the file.  [docs/safetensors.md]
///
/// Tensors of wider types come first, so that each lies aligned to its type; those of one width keep the caller's
/// order. Same input, same bytes.
/// Throws: bad_request if two tensors share a name, a name is reserved or no UTF-8, a type is below a byte, or a tensor
/// gives another number of bytes than its shape takes (names it); bad_file as AtomicFile.
void write_safetensors(AtomicFile& file, std::span<const SafetensorsSource> tensors,
                       const std::map<std::string, std::string>& metadata = {});
/// The same, to the file `path`, which appears whole or not at all.
void write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsSource> tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// A tensor that was read.
struct SafetensorsTensor {
  std::string name;
  DType dtype = DType::u8;
  Shape shape;
  std::span<const std::uint8_t> data;  ///< view of the file
};

/// A safetensors file that was read and checked.
struct Safetensors {
  std::map<std::string, std::string> metadata;
  std::vector<SafetensorsTensor> tensors;  ///< in the order of their bytes
  std::shared_ptr<const MappedFile> file;  ///< what the tensors view; empty after parse_safetensors

  /// The tensor `name`, or null.
  const SafetensorsTensor* find(std::string_view name) const noexcept;
};

/// Reads a whole safetensors file, which must outlive the result. `name` is how messages call it.
///
/// Throws: bad_file if the header is no JSON object of the format's form, is longer than 100 MB, names a tensor twice,
/// or if the tensors' bytes overlap, leave gaps or are not as many as their shapes take (names the tensor); unsupported
/// for types that DType does not know.
Safetensors parse_safetensors(std::span<const std::uint8_t> file, std::string_view name);
/// The same for the file `path`, mapped. Throws: bad_file also if it cannot be read.
Safetensors read_safetensors(const std::filesystem::path& path);

}  // namespace weightmill
