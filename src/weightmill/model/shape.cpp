#include "shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <weightmill/base/error.h>

namespace weightmill {

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::uint64_t n_elements(const Shape& shape, std::string_view where) {
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) fail(ErrorCode::bad_file, where, fmt::format("shape {} has an open or negative extent", to_string(shape)));
    empty = empty || extent == 0;
  }
  if (empty) return 0;
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(product, extent, &product)) {
      fail(ErrorCode::bad_file, where, fmt::format("shape {} is too large", to_string(shape)));
    }
  }
  return static_cast<std::uint64_t>(product);
}

std::uint64_t size_bytes(const Shape& shape, DType dtype, std::string_view where) {
  const unsigned bits = size_bits(dtype);
  if (bits == 0) fail(ErrorCode::bad_file, where, "has a type without a size");
  const std::uint64_t n = n_elements(shape, where);
  if (n > (std::uint64_t{1} << 57)) fail(ErrorCode::bad_file, where, fmt::format("shape {} is too large", to_string(shape)));
  return (n * bits + 7) / 8;
}

}  // namespace weightmill
