#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weightmill {

/// Copies a serialised ModelProto and puts other bytes in the place of each TensorProto.raw_data, wherever a tensor can
/// stand: initialisers, attributes, sub-graphs, functions, training graphs. All else is copied byte for byte, except
/// for the lengths of the messages around it.
///
/// This is what keeps large models out of memory: the reader cuts the payloads out before protobuf sees the model, and
/// the writer puts them back behind it.
class RawDataReplacer {
 public:
  /// How many bytes take the place of `raw_data`.
  using Measure = std::function<std::size_t(std::span<const std::uint8_t> raw_data)>;
  /// Writes just as many bytes to `sink`.
  using Sink = std::function<void(std::span<const std::uint8_t> bytes)>;
  using Emit = std::function<void(std::span<const std::uint8_t> raw_data, const Sink& sink)>;

  /// Reads `model` once and measures the result. `where` names the file.
  /// Throws: bad_file if `model` is not made of protobuf fields, nests deeper than protobuf reads (100), or has more
  /// messages than a sane model (kMaxMessages).
  RawDataReplacer(std::span<const std::uint8_t> model, std::string_view where, const Measure& measure);

  std::uint64_t size_bytes() const noexcept { return size_bytes_; }
  /// Reads the model a second time and writes the result to `sink`. `emit` is called in the order of `measure`'s calls.
  void write(const Emit& emit, const Sink& sink) const;

  /// Each message costs protobuf some 200 bytes: this bounds what a hostile file of empty messages can ask for.
  static constexpr std::size_t kMaxMessages = std::size_t{1} << 22;

 private:
  std::span<const std::uint8_t> model_;
  std::string where_;
  std::vector<std::uint64_t> sizes_;  ///< of each nested message in the result, in the order of its beginning
  std::uint64_t size_bytes_ = 0;
};

}  // namespace weightmill
