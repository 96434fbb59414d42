#pragma once

#include <string>
#include <string_view>

#include <weightmill/model/shape.h>

namespace weightmill::npy {

/// What the dictionary in front of an array says.
struct Header {
  std::string descr;  ///< numpy's word for type and byte order, e.g. "<i2"
  bool fortran_order = false;
  Shape shape;
};

/// Reads the dictionary, a Python literal with exactly the keys descr, fortran_order and shape in any order.
/// Throws: bad_file if it is not of that form; unsupported for types that are records.
Header read_header(std::string_view text, std::string_view where);

}  // namespace weightmill::npy
