#include "tile_cache.h"

#include <algorithm>
#include <cstring>

#include "constant_values.h"
#include "payload.h"

namespace weightmill {
namespace {

/// Floats of a tile: 16 MiB.
constexpr std::uint64_t kTileElements = std::uint64_t{1} << 22;
/// Rows are turned in squares, whose lines of the file and of the tile both stay in the cache.
constexpr std::uint64_t kSquare = 16;
/// Pages are given back after so many stored rows.
constexpr std::uint64_t kReleaseRows = 256;

std::uint64_t extent_of(const OnnxConstant& constant, std::size_t axis) {
  return static_cast<std::uint64_t>(constant.shape[axis]);
}

std::uint64_t columns_of(const OnnxConstant& constant) { return extent_of(constant, constant.shape.size() - 1); }

std::uint64_t rows_of(const OnnxConstant& constant) {
  std::uint64_t rows = 1;
  for (std::size_t axis = 0; axis + 1 < constant.shape.size(); ++axis) rows *= extent_of(constant, axis);
  return rows;
}

/// The number of the stored element at the beginning of a row.
std::uint64_t stored_at(const OnnxConstant& constant, std::uint64_t row) {
  std::uint64_t stored = 0;
  for (std::size_t axis = constant.shape.size() - 1; axis-- > 0;) {
    stored += row % extent_of(constant, axis) * static_cast<std::uint64_t>(constant.strides[axis]);
    row /= extent_of(constant, axis);
  }
  return stored;
}

std::uint64_t rows_of_tile(const OnnxConstant& constant) {
  return std::max<std::uint64_t>(1, kTileElements / columns_of(constant));
}

/// Turns `n_rows` rows whose beginnings are stored one behind the other, the first at element `stored`.
void turn(const OnnxConstant& constant, std::uint64_t stored, std::uint64_t n_rows, float* out) {
  const std::uint64_t columns = columns_of(constant);
  const auto stride = static_cast<std::uint64_t>(constant.strides.back());
  const std::size_t size = size_bits(constant.stored_dtype) / 8;
  std::uint64_t released = 0;
  for (std::uint64_t column = 0; column < columns; column += kSquare) {
    const std::uint64_t end = std::min(column + kSquare, columns);
    for (std::uint64_t row = 0; row < n_rows; ++row) {
      for (std::uint64_t c = column; c < end; ++c)
        out[row * columns + c] = stored_float(constant, stored + row + c * stride);
    }
    if (end - released < kReleaseRows && end != columns) continue;
    const std::size_t begin = (stored + released * stride) * size;
    const std::size_t last = (stored + (end - 1) * stride + n_rows) * size;
    release_pages(*constant.file, constant.bytes.subspan(begin, last - begin));
    released = end;
  }
}

}  // namespace

bool TileCache::helps(const OnnxConstant& constant) {
  const std::size_t rank = constant.shape.size();
  return rank >= 2 && constant.file && constant.bytes.size() > kSmallBytes && constant.strides[rank - 2] == 1 &&
         constant.strides[rank - 1] != 1 && columns_of(constant) <= kTileElements &&
         size_bits(constant.stored_dtype) >= 8;
}

std::shared_ptr<const TileCache::Tile> TileCache::tile_with(const OnnxConstant& constant, std::uint64_t reader,
                                                            std::uint64_t row) {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t n = rows_of_tile(constant), first = row / n * n;
  for (const auto& tile : tiles_) {
    if (tile && tile->reader == reader && tile->first_row == first) return tile;
  }
  auto tile = std::make_shared<Tile>(Tile{reader, first, {}});
  tiles_[oldest_].reset();
  const std::uint64_t end = std::min(first + n, rows_of(constant)), columns = columns_of(constant);
  tile->rows.resize((end - first) * columns);
  const std::uint64_t neighbours = extent_of(constant, constant.shape.size() - 2);  // rows that are stored side by side
  for (std::uint64_t at = first; at < end;) {
    const std::uint64_t count = std::min(neighbours - at % neighbours, end - at);
    turn(constant, stored_at(constant, at), count, tile->rows.data() + (at - first) * columns);
    at += count;
  }
  tiles_[oldest_] = tile;
  oldest_ ^= 1;
  return tile;
}

void TileCache::read(const OnnxConstant& constant, std::uint64_t reader, std::uint64_t first, std::span<float> out) {
  const std::uint64_t columns = columns_of(constant);
  for (std::size_t done = 0; done < out.size();) {
    const std::uint64_t at = first + done;
    const auto tile = tile_with(constant, reader, at / columns);
    const std::uint64_t from = at - tile->first_row * columns;
    const std::size_t count = std::min<std::uint64_t>(out.size() - done, tile->rows.size() - from);
    std::copy_n(tile->rows.begin() + static_cast<std::ptrdiff_t>(from), count,
                out.begin() + static_cast<std::ptrdiff_t>(done));
    done += count;
  }
  apply_casts(constant, out);
}

}  // namespace weightmill
