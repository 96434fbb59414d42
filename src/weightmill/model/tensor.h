#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <weightmill/model/affine.h>
#include <weightmill/model/dtype.h>
#include <weightmill/model/shape.h>

namespace weightmill {

/// One tensor of a graph. A constant's bytes are a view of the mapped model file, or owned where they had to be made
/// (a sparse tensor densified); an activation has none.
struct Tensor {
  std::string name;  ///< as the file gives it; may be empty or shared by several tensors
  DType dtype = DType::other;
  std::string format_dtype;  ///< the file's own word for the type, e.g. "INT8"
  Shape shape;
  Shape shape_signature;  ///< TFLite: the shape with -1 where an extent is open; empty where the file does not say
  Affine quantization;
  std::string quantization_details;  ///< the file's word for another scheme, e.g. "BlockwiseQuantization"
  std::span<const std::uint8_t> data;  ///< row-major, little endian, at any alignment; empty unless `constant`
  std::shared_ptr<const std::vector<std::uint8_t>> owned;  ///< what `data` views, where it is no part of the file
  bool constant = false;
  bool variable = false;  ///< a state that lives from one run to the next
  bool sparse = false;    ///< stored sparse in the file; `data` is dense and owned
  std::int64_t buffer = -1;  ///< identity of the bytes: tensors with equal numbers >= 0 share them
};

}  // namespace weightmill
