#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weightmill/base/mapped_file.h>

namespace weightmill {

/// The bytes of one tensor: a view of a mapped file, bytes we own, or bytes made while they are written.
struct Payload {
  using Sink = std::function<void(std::span<const std::uint8_t> bytes)>;
  using Produce = std::function<void(const Sink& sink)>;

  std::uint64_t size_bytes = 0;
  std::span<const std::uint8_t> view;                      ///< empty if produced
  std::shared_ptr<const MappedFile> file;                  ///< what `view` is a part of, or nothing
  std::shared_ptr<const std::vector<std::uint8_t>> owned;  ///< the same for bytes of our own
  Produce produce;                                         ///< writes exactly `size_bytes`

  /// Writes all bytes in pieces and gives the pages of a mapped file back as it goes.
  void write(const Sink& sink) const;
};

/// A view of `size` bytes of `file` from `offset` on.
Payload mapped_payload(std::shared_ptr<const MappedFile> file, std::size_t offset, std::size_t size);
Payload owned_payload(std::vector<std::uint8_t> bytes);

/// Tells the system that `part` of `file` will not be read again soon.
void release_pages(const MappedFile& file, std::span<const std::uint8_t> part);

/// All payloads of a model. While a model is in memory, TensorProto.raw_data holds not bytes but the number of a
/// payload (8 bytes, little endian).
class PayloadTable {
 public:
  /// Adds a payload and returns what stands for it in raw_data.
  std::string add(Payload payload);
  /// The payload that a raw_data made by add() stands for. Requires: `raw_data` comes from this table.
  const Payload& at(std::string_view raw_data) const { return payloads_[index_of(raw_data)]; }
  static std::size_t index_of(std::string_view raw_data);

 private:
  std::vector<Payload> payloads_;
};

}  // namespace weightmill
