#include <algorithm>
#include <cassert>
#include <cstring>

#include <weightmill/base/half.h>

#include "constant_values.h"
#include "payload.h"
#include "tile_cache.h"

namespace weightmill {
namespace {

template <class T>
T load(const std::uint8_t* bytes, std::uint64_t index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

/// Element `index` of packed 4-bit or 2-bit numbers, the first in the lowest bits.
std::int32_t load_packed(const std::uint8_t* bytes, std::uint64_t index, unsigned bits, bool is_signed) {
  const unsigned per_byte = 8 / bits;
  const auto shift = static_cast<unsigned>(index % per_byte) * bits;
  const std::int32_t code = (bytes[index / per_byte] >> shift) & ((1 << bits) - 1);
  return is_signed && code >= 1 << (bits - 1) ? code - (1 << bits) : code;
}

std::int32_t load_integer(const OnnxConstant& constant, std::uint64_t index) {
  const std::uint8_t* bytes = constant.bytes.data();
  switch (constant.stored_dtype) {
    case DType::i8:
      return load<std::int8_t>(bytes, index);
    case DType::u8:
      return load<std::uint8_t>(bytes, index);
    case DType::i16:
      return load<std::int16_t>(bytes, index);
    case DType::u16:
      return load<std::uint16_t>(bytes, index);
    case DType::i32:
      return load<std::int32_t>(bytes, index);
    default:
      return load_packed(bytes, index, size_bits(constant.stored_dtype),
                         constant.stored_dtype == DType::i4 || constant.stored_dtype == DType::i2);
  }
}

float rounded_to(DType dtype, float x) {
  if (dtype == DType::f16) return from_f16(to_f16(x));
  if (dtype == DType::bf16) return from_bf16(to_bf16(x));
  return x;
}

bool is_row_major(const OnnxConstant& constant) {
  std::int64_t expected = 1;
  for (std::size_t axis = constant.shape.size(); axis-- > 0;) {
    if (constant.shape[axis] != 1 && constant.strides[axis] != expected) return false;
    expected *= constant.shape[axis];
  }
  return true;
}

/// Walks through the stored elements in the order in which the reader sees them.
class StridedWalk {
 public:
  StridedWalk(const OnnxConstant& constant, std::uint64_t first)
      : constant_(constant), index_(constant.shape.size(), 0) {
    for (std::size_t axis = index_.size(); axis-- > 0;) {
      const auto extent = static_cast<std::uint64_t>(constant.shape[axis]);
      index_[axis] = static_cast<std::int64_t>(first % extent);
      stored_ += index_[axis] * constant.strides[axis];
      first /= extent;
    }
  }
  std::uint64_t stored() const { return static_cast<std::uint64_t>(stored_); }
  void advance() {
    for (std::size_t axis = index_.size(); axis-- > 0;) {
      stored_ += constant_.strides[axis];
      if (++index_[axis] < constant_.shape[axis]) return;
      stored_ -= index_[axis] * constant_.strides[axis];
      index_[axis] = 0;
    }
  }

 private:
  const OnnxConstant& constant_;
  std::vector<std::int64_t> index_;
  std::int64_t stored_ = 0;
};

/// Gives back pages, a stretch at a time: a call costs as much as reading some pages.
void release_behind(const OnnxConstant& constant, std::size_t first, std::size_t n) {
  constexpr std::size_t kStretch = std::size_t{1} << 20;
  const std::size_t size = size_bits(constant.stored_dtype) / 8;
  const std::size_t end = (first + n) * size;
  if (first * size / kStretch == end / kStretch && end != constant.bytes.size()) return;
  // From the stretch before on, whose last page has been cut in two by the end of the last call.
  const std::size_t begin = (std::max(end / kStretch, std::size_t{2}) - 2) * kStretch;
  release_pages(*constant.file, constant.bytes.subspan(begin, end - begin));
}

void read_row_major(const OnnxConstant& constant, std::uint64_t first, std::span<float> out) {
  if (constant.stored_dtype == DType::f32) {
    std::memcpy(out.data(), constant.bytes.data() + first * sizeof(float), out.size_bytes());
  } else {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = stored_float(constant, first + i);
  }
  if (constant.file) release_behind(constant, static_cast<std::size_t>(first), out.size());
}

void read_strided(const OnnxConstant& constant, std::uint64_t first, std::span<float> out) {
  StridedWalk walk(constant, first);
  for (float& value : out) {
    value = stored_float(constant, walk.stored());
    walk.advance();
  }
  if (constant.file && constant.bytes.size() > TileCache::kSmallBytes) release_pages(*constant.file, constant.bytes);
}

}  // namespace

float stored_float(const OnnxConstant& constant, std::uint64_t index) {
  const std::uint8_t* bytes = constant.bytes.data();
  switch (constant.stored_dtype) {
    case DType::f32:
      return load<float>(bytes, index);
    case DType::f16:
      return from_f16(load<std::uint16_t>(bytes, index));
    case DType::bf16:
      return from_bf16(load<std::uint16_t>(bytes, index));
    case DType::f64:
      return static_cast<float>(load<double>(bytes, index));
    default:
      return static_cast<float>(load_integer(constant, index));
  }
}

void apply_casts(const OnnxConstant& constant, std::span<float> values) {
  for (const DType dtype : constant.casts) {
    if (dtype == DType::f32) continue;
    for (float& value : values) value = rounded_to(dtype, value);
  }
}

void read_floats(const OnnxConstant& constant, std::uint64_t first, std::span<float> out) {
  if (out.empty()) return;
  is_row_major(constant) ? read_row_major(constant, first, out) : read_strided(constant, first, out);
  apply_casts(constant, out);
}

std::vector<std::int32_t> read_integers(const OnnxConstant& constant) {
  assert(constant.casts.empty() && is_integer(constant.stored_dtype) && size_bits(constant.stored_dtype) <= 32 &&
         constant.stored_dtype != DType::u32);
  std::vector<std::int32_t> values(n_elements(constant.shape, constant.name));
  if (values.empty()) return values;
  StridedWalk walk(constant, 0);
  for (std::int32_t& value : values) {
    value = load_integer(constant, walk.stored());
    walk.advance();
  }
  return values;
}

}  // namespace weightmill
