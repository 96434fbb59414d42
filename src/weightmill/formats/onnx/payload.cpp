#include "payload.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace weightmill {
namespace {

/// Large enough that a write costs more than its call, small enough to stay in the cache.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

}  // namespace

void Payload::write(const Sink& sink) const {
  if (produce) return produce(sink);
  for (std::size_t begin = 0; begin < view.size(); begin += kPieceBytes) {
    const auto piece = view.subspan(begin, std::min(kPieceBytes, view.size() - begin));
    sink(piece);
    if (file) release_pages(*file, piece);
  }
}

Payload mapped_payload(std::shared_ptr<const MappedFile> file, std::size_t offset, std::size_t size) {
  Payload payload;
  payload.size_bytes = size;
  payload.view = file->bytes().subspan(offset, size);
  payload.file = std::move(file);
  return payload;
}

Payload owned_payload(std::vector<std::uint8_t> bytes) {
  Payload payload;
  payload.owned = std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes));
  payload.size_bytes = payload.owned->size();
  payload.view = *payload.owned;
  return payload;
}

void release_pages(const MappedFile& file, std::span<const std::uint8_t> part) {
  if (!part.empty()) file.release(static_cast<std::size_t>(part.data() - file.bytes().data()), part.size());
}

std::string PayloadTable::add(Payload payload) {
  const std::uint64_t index = payloads_.size();
  payloads_.push_back(std::move(payload));
  std::string raw_data(sizeof index, '\0');
  std::memcpy(raw_data.data(), &index, sizeof index);
  return raw_data;
}

std::size_t PayloadTable::index_of(std::string_view raw_data) {
  std::uint64_t index = 0;
  assert(raw_data.size() == sizeof index);
  std::memcpy(&index, raw_data.data(), sizeof index);
  return static_cast<std::size_t>(index);
}

}  // namespace weightmill
