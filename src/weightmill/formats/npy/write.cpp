#include <string>

#include <fmt/format.h>

#include <weightmill/base/atomic_file.h>
#include <weightmill/base/bits.h>
#include <weightmill/base/error.h>

#include "npy.h"
#include "npy/dtypes.h"

namespace weightmill {
namespace {

/// numpy lets the data begin at a multiple of this, so that it can be mapped.
constexpr std::size_t kDataAlignment = 64;

/// numpy leaves room for the first extent to grow to as many digits while a file is being appended to.
constexpr std::size_t kGrowthDigits = 21;

std::string shape_literal(const Shape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::string dictionary(DType dtype, const Shape& shape) {
  const char order = size_bits(dtype) > 8 ? '<' : '|';
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': {}, }}", order,
                                 npy::letters_of(dtype), shape_literal(shape));
  if (!shape.empty()) text.append(kGrowthDigits - std::to_string(shape[0]).size(), ' ');
  return text;
}

/// Everything in front of the data. Version 1 has two bytes for the length, which few arrays exceed.
std::string make_header(const std::string& text) {
  const auto padded = [&](std::size_t n_length) {
    const std::size_t prefix = 8 + n_length;
    return ceil_to(prefix + text.size() + 1, kDataAlignment) - prefix;
  };
  const bool short_form = padded(2) <= 0xffff;
  const std::size_t length = padded(short_form ? 2 : 4);
  std::string header = "\x93NUMPY";
  header += static_cast<char>(short_form ? 1 : 2);
  header += '\0';
  for (std::size_t i = 0; i < (short_form ? 2u : 4u); ++i) header += static_cast<char>(length >> (8 * i) & 0xff);
  return header + text + std::string(length - text.size() - 1, ' ') + '\n';
}

}  // namespace

std::vector<std::uint8_t> make_npy(DType dtype, const Shape& shape, std::span<const std::uint8_t> data) {
  if (npy::letters_of(dtype).empty())
    fail(ErrorCode::bad_request, ".npy", fmt::format("has no type for {}", name_of(dtype)));
  const std::uint64_t wanted = size_bytes(shape, dtype, ".npy");
  if (data.size() != wanted) {
    fail(ErrorCode::bad_request, ".npy",
         fmt::format("was given {} bytes, wanted {} for {}{}", data.size(), wanted, name_of(dtype), to_string(shape)));
  }
  const std::string header = make_header(dictionary(dtype, shape));
  std::vector<std::uint8_t> file(header.begin(), header.end());
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

void write_npy(const std::filesystem::path& path, DType dtype, const Shape& shape, std::span<const std::uint8_t> data) {
  write_file(path, make_npy(dtype, shape, data));
}

}  // namespace weightmill
