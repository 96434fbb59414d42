#include "codec.h"

#include <cstring>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include <weightmill/base/atomic_file.h>
#include <weightmill/base/error.h>
#include <weightmill/base/mapped_file.h>
#include <weightmill/base/narrow.h>
#include <weightmill/formats/npy.h>

namespace weightmill {
namespace {

/// Elements as int16; what does not fit is out of any stream's range as well.
template <class T>
std::vector<std::int16_t> widened(std::span<const std::uint8_t> bytes, const std::string& name) {
  std::vector<std::int16_t> weights(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    if (!std::in_range<std::int16_t>(value)) {
      fail(ErrorCode::bad_request, name, fmt::format("weight {} is {}; a stream carries -255..255", i, value));
    }
    weights[i] = static_cast<std::int16_t>(value);
  }
  return weights;
}

std::vector<std::int16_t> weights_of(const NpyArray& array, const std::string& name) {
  switch (array.dtype) {
    case DType::i8:
      return widened<std::int8_t>(array.data, name);
    case DType::u8:
      return widened<std::uint8_t>(array.data, name);
    case DType::i16:
      return widened<std::int16_t>(array.data, name);
    case DType::u16:
      return widened<std::uint16_t>(array.data, name);
    case DType::i32:
      return widened<std::int32_t>(array.data, name);
    case DType::u32:
      return widened<std::uint32_t>(array.data, name);
    case DType::i64:
      return widened<std::int64_t>(array.data, name);
    case DType::u64:
      return widened<std::uint64_t>(array.data, name);
    default:
      fail(ErrorCode::bad_request, name, fmt::format("holds {}; integers wanted", name_of(array.dtype)));
  }
}

std::vector<std::uint8_t> encode_as_fast(std::span<const std::int16_t> weights, const std::string& name) {
  auto stream = mlw::encode_fast(weights);
  if (!stream) fail(ErrorCode::unsupported, name, "8 bits cannot hold these weights: use the standard format");
  return std::move(*stream);
}

}  // namespace

CodecResult encode_npy(const std::filesystem::path& input, const std::filesystem::path& output, mlw::Effort effort,
                       mlw::Forms forms, bool fast) {
  const auto weights = weights_of(read_npy(input), input.string());
  const auto stream = fast ? encode_as_fast(weights, input.string()) : mlw::encode(weights, effort, forms);
  if (!output.empty()) write_file(output, stream);
  return {weights.size(), stream.size()};
}

CodecResult decode_to_npy(const std::filesystem::path& input, const std::filesystem::path& output,
                          std::optional<std::uint64_t> n_fast) {
  const MappedFile file(input);
  const auto weights =
      n_fast ? mlw::decode_fast(file.bytes(), narrow<std::size_t>(*n_fast, "--count")) : mlw::decode(file.bytes());
  if (!output.empty()) {
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(weights.data()), weights.size() * sizeof(std::int16_t));
    write_npy(output, DType::i16, {static_cast<std::int64_t>(weights.size())}, bytes);
  }
  return {weights.size(), file.bytes().size()};
}

}  // namespace weightmill
