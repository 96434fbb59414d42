#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace weightmill::testkit {

/// One array of an .npz file, little endian.
struct NpyArray {
  std::string dtype;  ///< numpy's word: "f4", "f8", "i1", "u2", "i4", "i8"
  std::vector<std::int64_t> shape;
  std::span<const std::uint8_t> bytes;
  bool column_major = false;  ///< numpy's "fortran_order": the first axis runs fastest in `bytes`

  /// The elements, row-major. Throws std::runtime_error if T has another size than `dtype`.
  template <class T>
  std::vector<T> as() const {
    if (std::to_string(sizeof(T)) != dtype.substr(1)) throw std::runtime_error("array has dtype " + dtype);
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    if (!column_major) return values;
    std::vector<T> ordered(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) ordered[i] = values[column_major_index(i)];
    return ordered;
  }

  /// Where the element at `row_major_index` is in a column-major array of this shape.
  std::size_t column_major_index(std::size_t row_major_index) const;
};

/// An uncompressed .npz file of a golden set. Trusted input: it is only as careful as a test needs.
class NpzFile {
 public:
  /// The file, or nothing where it does not exist.
  static std::optional<NpzFile> open(const std::filesystem::path& path);

  bool contains(const std::string& name) const { return arrays_.contains(name); }
  /// Throws std::out_of_range if there is no array of that name (without ".npy").
  const NpyArray& at(const std::string& name) const { return arrays_.at(name); }

 private:
  std::vector<std::uint8_t> bytes_;
  std::map<std::string, NpyArray> arrays_;
};

}  // namespace weightmill::testkit
