#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "module.h"

#include <nanobind/ndarray.h>

/// The bytes of a Python object that offers them (bytes, bytearray, memoryview, a uint8 array), held while this lives.
class ByteView {
 public:
  explicit ByteView(nanobind::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_SIMPLE) != 0) throw nanobind::python_error();
  }
  ~ByteView() { PyBuffer_Release(&buffer_); }
  ByteView(const ByteView&) = delete;
  ByteView& operator=(const ByteView&) = delete;

  std::span<const std::uint8_t> bytes() const noexcept {
    return {static_cast<const std::uint8_t*>(buffer_.buf), static_cast<std::size_t>(buffer_.len)};
  }

 private:
  Py_buffer buffer_{};
};

/// `values` as a numpy array that owns them.
template <class T>
nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>> to_numpy(std::vector<T> values) {
  auto* owned = new std::vector<T>(std::move(values));
  nanobind::capsule owner(owned, [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
  return {owned->data(), {owned->size()}, owner};
}

inline nanobind::bytes to_bytes(std::span<const std::uint8_t> bytes) {
  return nanobind::bytes(bytes.data(), bytes.size());
}
