#include "sparsity_reader.h"

#include <fmt/format.h>

#include <weightmill/base/error.h>

#include "sparsity.h"

namespace weightmill {
namespace {

/// The numbers of a vector of 8, 16 or 32 bits a piece. An index vector of a type newer than this program has none.
std::vector<std::int64_t> read_indices(Container& container, tflite::SparseIndexVector type, const void* table) {
  if (table == nullptr) return {};
  switch (type) {
    case tflite::SparseIndexVector::Int32Vector:
      return container.numbers<std::int64_t>(static_cast<const tflite::Int32Vector*>(table)->values());
    case tflite::SparseIndexVector::Uint16Vector:
      return container.numbers<std::int64_t>(static_cast<const tflite::Uint16Vector*>(table)->values());
    case tflite::SparseIndexVector::Uint8Vector:
      return container.numbers<std::int64_t>(static_cast<const tflite::Uint8Vector*>(table)->values());
    default: return {};
  }
}

SparseLevel read_level(Container& container, const tflite::DimensionMetadata& source, std::string_view where) {
  SparseLevel level;
  level.dense = source.format() == tflite::DimensionType::DENSE;
  level.extent = source.dense_size();
  if (level.dense) return level;
  if (source.format() != tflite::DimensionType::SPARSE_CSR) {
    fail(ErrorCode::unsupported, where,
         fmt::format("is sparse in a format {} that this program does not know", static_cast<int>(source.format())));
  }
  level.segments = read_indices(container, source.array_segments_type(), source.array_segments());
  level.indices = read_indices(container, source.array_indices_type(), source.array_indices());
  if (level.segments.empty()) fail(ErrorCode::bad_file, where, "is sparse, and a level has no segment bounds");
  return level;
}

SparseLayout read_layout(Container& container, const tflite::SparsityParameters& source, std::string_view where) {
  SparseLayout layout;
  layout.traversal_order = container.numbers<std::int64_t>(source.traversal_order());
  layout.block_map = container.numbers<std::int64_t>(source.block_map());
  for (std::uint32_t i = 0; i < size_of(source.dim_metadata()); ++i) {
    layout.levels.push_back(read_level(container, *source.dim_metadata()->Get(i), where));
  }
  return layout;
}

}  // namespace

std::vector<std::uint8_t> read_dense(Container& container, const tflite::SparsityParameters& source,
                                     const Tensor& tensor, std::string_view where) {
  const unsigned bits = size_bits(tensor.dtype);
  if (bits < 8) {
    fail(ErrorCode::unsupported, where,
         fmt::format("is sparse with elements of {}: only whole bytes are read", tensor.format_dtype));
  }
  container.take_dense(size_bytes(tensor.shape, tensor.dtype, where), where);
  return densify(read_layout(container, source, where), tensor.shape, bits / 8, tensor.data, where);
}

}  // namespace weightmill
