#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tflite_generated.h>

#include "tflite.h"

namespace weightmill {

/// A verified TFLite flatbuffer with the file around it, and what reading it may still cost.
///
/// Copies out of the file go through text() and numbers(), which count them: tables of a flatbuffer may share their
/// parts, so a small hostile file could otherwise ask for terabytes of copies.
class Container {
 public:
  /// Throws: bad_file if `file` is no sound TFLite flatbuffer; unsupported for another schema version.
  Container(std::span<const std::uint8_t> file, std::string_view name, const TfliteLimits& limits);

  const tflite::Model& root() const { return *root_; }
  const std::string& name() const { return name_; }

  /// Bytes [offset, offset + size) of the file. Throws: bad_file if they are not all there.
  std::span<const std::uint8_t> outside(std::uint64_t offset, std::uint64_t size, std::string_view where) const;
  /// The bytes of buffer `index`, inside or behind the flatbuffer; empty if it has none.
  /// Throws: bad_file if there is no such buffer, or its bytes are not all in the file.
  std::span<const std::uint8_t> buffer(std::uint32_t index, std::string_view where) const;

  std::string text(const flatbuffers::String* text);
  /// The vector's elements as T; empty if it is absent.
  template <class T, class U>
  std::vector<T> numbers(const flatbuffers::Vector<U>* vector);

  /// Counts `bytes` of densified data. Throws: unsupported beyond the limit.
  void take_dense(std::uint64_t bytes, std::string_view where);

 private:
  void take_copied(std::uint64_t bytes);

  std::span<const std::uint8_t> file_;
  std::string name_;
  const tflite::Model* root_ = nullptr;
  std::uint64_t copied_left_;
  std::uint64_t dense_left_;
};

template <class T, class U>
std::vector<T> Container::numbers(const flatbuffers::Vector<U>* vector) {
  if (vector == nullptr) return {};
  take_copied(std::uint64_t{vector->size()} * sizeof(T));
  std::vector<T> values(vector->size());
  const std::uint8_t* data = vector->Data();
  for (std::size_t i = 0; i < values.size(); ++i) {
    U value{};
    std::memcpy(&value, data + i * sizeof(U), sizeof(U));  // a hostile file need not align its elements
    values[i] = static_cast<T>(value);
  }
  return values;
}

/// Number of elements; 0 if the vector is absent.
template <class Vector>
std::size_t size_of(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

}  // namespace weightmill
