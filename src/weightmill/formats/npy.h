#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <weightmill/base/mapped_file.h>
#include <weightmill/model/dtype.h>
#include <weightmill/model/shape.h>

namespace weightmill {

/// An array out of a .npy file.
struct NpyArray {
  DType dtype = DType::u8;
  Shape shape;
  std::span<const std::uint8_t> data;                      ///< row-major, little endian, at any alignment
  std::shared_ptr<const std::vector<std::uint8_t>> owned;  ///< what `data` views if the file is big endian
  std::shared_ptr<const MappedFile> file;                  ///< what `data` views otherwise; empty after parse_npy
};

/// Reads a .npy file of format version 1, 2 or 3, little or big endian. `file` must outlive the result; `name` is how
/// messages call it.  [docs/npy.md]
///
/// Types: bool, int and uint of 8 to 64 bits, float of 16 to 64 bits.
/// Throws: bad_file if the header is damaged or the data is not as long as it says; unsupported for Fortran order,
/// pickled objects, records and other types (says how to save the array instead).
NpyArray parse_npy(std::span<const std::uint8_t> file, std::string_view name);
/// The same for the file `path`, mapped. Throws: bad_file also if it cannot be read.
NpyArray read_npy(const std::filesystem::path& path);

/// The whole .npy file of an array, byte for byte as numpy writes it (version 1, or 2 where the header is long).
/// `data`: row-major, little endian. Throws: bad_request if numpy has no such type, or `data` is not as long as the
/// shape says.
std::vector<std::uint8_t> make_npy(DType dtype, const Shape& shape, std::span<const std::uint8_t> data);
/// Writes that file to `path`, which appears whole or not at all. Throws: bad_file also if it cannot be written.
void write_npy(const std::filesystem::path& path, DType dtype, const Shape& shape, std::span<const std::uint8_t> data);

}  // namespace weightmill
