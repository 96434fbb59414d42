#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <weightmill/model/dtype.h>

namespace weightmill {

/// Extents, outermost axis first. Empty for a scalar; -1 where a model leaves an extent open.
using Shape = std::vector<std::int64_t>;

/// "[1, 3, 3, 8]".
std::string to_string(const Shape& shape);

/// Number of elements. Throws: bad_file if an extent is negative or the product does not fit 63 bits (names `where`).
std::uint64_t n_elements(const Shape& shape, std::string_view where);

/// Bytes that `shape` elements of `dtype` take; 4-bit and 2-bit types round up to a whole byte. Throws: as n_elements;
/// bad_file for DType::other.
std::uint64_t size_bytes(const Shape& shape, DType dtype, std::string_view where);

}  // namespace weightmill
