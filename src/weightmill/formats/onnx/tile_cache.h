#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "onnx.h"

namespace weightmill {

/// Reads large constants behind a Transpose. Element by element, each read would touch another page of the file; so a
/// stretch of rows is turned at a time and kept while it is read. One cache serves all constants of a model, one after
/// the other.
class TileCache {
 public:
  /// Whether a constant is read through the cache: its last two axes are stored the other way round, it is mapped, and
  /// large.
  static bool helps(const OnnxConstant& constant);

  /// As read_floats(). Safe on several threads. Requires: helps(constant); `reader`: a number of the constant's own.
  void read(const OnnxConstant& constant, std::uint64_t reader, std::uint64_t first, std::span<float> out);

  /// Smaller constants may stay in memory while they are read criss-cross.
  static constexpr std::size_t kSmallBytes = std::size_t{16} << 20;

 private:
  struct Tile {
    std::uint64_t reader = 0, first_row = 0;
    std::vector<float> rows;
  };
  std::shared_ptr<const Tile> tile_with(const OnnxConstant& constant, std::uint64_t reader, std::uint64_t row);

  std::mutex mutex_;
  std::array<std::shared_ptr<const Tile>, 2> tiles_;  ///< two, for threads on both sides of a border
  std::size_t oldest_ = 0;
};

}  // namespace weightmill
