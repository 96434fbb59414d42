#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/error.h>

#include "npy.h"
#include "npy/dtypes.h"
#include "npy/header.h"
#include "quote.h"

namespace weightmill {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionBytes = 2;

/// More than any header of the types that are read here.
constexpr std::size_t kMaxHeaderBytes = 1 << 16;

struct Parts {
  std::string_view header;
  std::span<const std::uint8_t> data;
};

/// Version 1 gives the header's length in 2 bytes, versions 2 and 3 in 4.
Parts split(std::span<const std::uint8_t> file, std::string_view where) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic))
    fail(ErrorCode::bad_file, where, "is no .npy file: it does not begin with '\\x93NUMPY'");
  if (file.size() < kMagic.size() + kVersionBytes + 4) fail(ErrorCode::bad_file, where, "is cut short in its header");
  const unsigned version = file[kMagic.size()];
  if (version < 1 || version > 3)
    fail(ErrorCode::unsupported, where, fmt::format("has .npy version {}, wanted 1 to 3", version));
  const std::size_t n_length = version == 1 ? 2 : 4;
  std::size_t length = 0;
  for (std::size_t i = n_length; i-- > 0;) length = length << 8 | file[kMagic.size() + kVersionBytes + i];
  const std::size_t begin = kMagic.size() + kVersionBytes + n_length;
  if (length > file.size() - begin || length > kMaxHeaderBytes) {
    fail(ErrorCode::bad_file, where,
         fmt::format("says that its header takes {} bytes of {}: it is cut short or damaged", length,
                     file.size() - begin));
  }
  return {text.substr(begin, length), file.subspan(begin + length)};
}

DType checked_dtype(const npy::Header& header, std::string_view where) {
  const std::string_view descr = header.descr;
  if (descr.starts_with("|O")) {
    fail(ErrorCode::unsupported, where,
         "holds pickled objects, which are never opened: save an array of numbers, a.astype('int16')");
  }
  const bool known_order = !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  const auto dtype = known_order ? npy::dtype_of(descr.substr(1)) : std::nullopt;
  if (!dtype)
    fail(ErrorCode::unsupported, where,
         fmt::format("has type {}: save it as a type of integers or floats", quote(descr)));
  if (descr[0] == '|' && size_bits(*dtype) > 8)
    fail(ErrorCode::bad_file, where, fmt::format("has type {} without a byte order", quote(descr)));
  return *dtype;
}

/// Fortran order of up to one long axis is the same as C order.
void check_order(const npy::Header& header, std::string_view where) {
  const auto is_long = [](std::int64_t extent) { return extent > 1; };
  if (header.fortran_order && std::count_if(header.shape.begin(), header.shape.end(), is_long) > 1) {
    fail(ErrorCode::unsupported, where, "is in Fortran order: save np.ascontiguousarray(a)");
  }
}

std::vector<std::uint8_t> byte_swapped(std::span<const std::uint8_t> data, std::size_t element_bytes) {
  std::vector<std::uint8_t> swapped(data.begin(), data.end());
  for (auto element = swapped.begin(); element != swapped.end();
       element += static_cast<std::ptrdiff_t>(element_bytes)) {
    std::reverse(element, element + static_cast<std::ptrdiff_t>(element_bytes));
  }
  return swapped;
}

}  // namespace

NpyArray parse_npy(std::span<const std::uint8_t> file, std::string_view name) {
  const Parts parts = split(file, name);
  npy::Header header = npy::read_header(parts.header, name);
  NpyArray array;
  array.dtype = checked_dtype(header, name);
  check_order(header, name);
  array.shape = std::move(header.shape);
  array.data = parts.data;
  const std::uint64_t wanted = size_bytes(array.shape, array.dtype, name);
  if (array.data.size() != wanted) {
    fail(ErrorCode::bad_file, name,
         fmt::format("has {} bytes of data, wanted {} for {}{}", array.data.size(), wanted, name_of(array.dtype),
                     to_string(array.shape)));
  }
  if (header.descr[0] == '>' && size_bits(array.dtype) > 8) {
    array.owned =
        std::make_shared<const std::vector<std::uint8_t>>(byte_swapped(array.data, size_bits(array.dtype) / 8));
    array.data = *array.owned;
  }
  return array;
}

NpyArray read_npy(const std::filesystem::path& path) {
  auto file = std::make_shared<const MappedFile>(path);
  NpyArray array = parse_npy(file->bytes(), file->name());
  array.file = std::move(file);
  return array;
}

}  // namespace weightmill
