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

/// One array of an .npz file: row-major, little endian.
struct NpyArray {
  std::string dtype;  ///< numpy's word: "f4", "f8", "i1", "u2", "i4", "i8"
  std::vector<std::int64_t> shape;
  std::span<const std::uint8_t> bytes;

  /// The elements. Throws std::runtime_error if T has another size than `dtype`.
  template <class T>
  std::vector<T> as() const {
    if (std::to_string(sizeof(T)) != dtype.substr(1)) throw std::runtime_error("array has dtype " + dtype);
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
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
