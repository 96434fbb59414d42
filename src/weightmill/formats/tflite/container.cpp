#include "container.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor data is taken from the file as it is");

constexpr std::uint32_t kSchemaVersion = 3;

/// Offsets inside a flatbuffer are signed 32-bit numbers; what lies behind can only be data.
constexpr std::uint64_t kMaxFlatbufferBytes = FLATBUFFERS_MAX_BUFFER_SIZE - 1;

/// A table takes at least 4 bytes, so a file without shared tables stays below this.
std::uint32_t max_tables(std::uint64_t file_bytes) {
  constexpr std::uint64_t kMost = 4'000'000;  // 16 MB of nothing but tables: far beyond real graphs
  return static_cast<std::uint32_t>(std::min(kMost, file_bytes / 4 + 1));
}

/// Copies out of a file that shares nothing take at most 8 bytes for each of its own; small files may share a little.
std::uint64_t max_copied_bytes(std::uint64_t file_bytes) { return 8 * file_bytes + (1 << 16); }

const tflite::Model* verified_root(std::span<const std::uint8_t> file, std::string_view name) {
  flatbuffers::Verifier::Options options;
  options.max_tables = max_tables(file.size());
  flatbuffers::Verifier verifier(file.data(), std::min<std::uint64_t>(file.size(), kMaxFlatbufferBytes), options);
  if (!is_tflite(file)) fail(ErrorCode::bad_file, name, "is no TFLite file: 'TFL3' is not at bytes 4 to 7");
  if (!tflite::VerifyModelBuffer(verifier)) {
    fail(ErrorCode::bad_file, name,
         "is damaged: its flatbuffer has an offset outside the file; get or convert it again");
  }
  return tflite::GetModel(file.data());
}

}  // namespace

bool is_tflite(std::span<const std::uint8_t> file) noexcept {
  return file.size() >= 8 && std::equal(file.begin() + 4, file.begin() + 8, "TFL3");
}

Container::Container(std::span<const std::uint8_t> file, std::string_view name, const TfliteLimits& limits)
    : file_(file),
      name_(name),
      root_(verified_root(file, name)),
      copied_left_(max_copied_bytes(file.size())),
      dense_left_(limits.dense_bytes) {
  if (root_->version() != kSchemaVersion) {
    fail(ErrorCode::unsupported, name_,
         fmt::format("has TFLite schema version {}, wanted {}", root_->version(), kSchemaVersion));
  }
}

std::span<const std::uint8_t> Container::outside(std::uint64_t offset, std::uint64_t size,
                                                 std::string_view where) const {
  if (offset > file_.size() || size > file_.size() - offset) {
    fail(ErrorCode::bad_file, where,
         fmt::format("its data, bytes {} to {} + {}, is not all in the file of {} bytes: is the file cut short?",
                     offset, offset, size, file_.size()));
  }
  return file_.subspan(offset, size);
}

std::span<const std::uint8_t> Container::buffer(std::uint32_t index, std::string_view where) const {
  const auto* buffers = root_->buffers();
  if (index >= size_of(buffers)) {
    fail(ErrorCode::bad_file, where, fmt::format("names buffer {} of {}", index, size_of(buffers)));
  }
  const tflite::Buffer& buffer = *buffers->Get(index);
  if (buffer.data() != nullptr) return {buffer.data()->Data(), buffer.data()->size()};
  // Writers put 1 as a placeholder before they know where the data will lie.
  if (buffer.offset() <= 1 || buffer.size() == 0) return {};
  return outside(buffer.offset(), buffer.size(), where);
}

std::string Container::text(const flatbuffers::String* text) {
  if (text == nullptr) return {};
  take_copied(text->size());
  return text->str();
}

void Container::take_copied(std::uint64_t bytes) {
  if (bytes > copied_left_) {
    fail(ErrorCode::bad_file, name_, "shares its strings and lists so often that they would not fit in memory");
  }
  copied_left_ -= bytes;
}

void Container::take_dense(std::uint64_t bytes, std::string_view where) {
  if (bytes > dense_left_) {
    fail(ErrorCode::unsupported, where,
         fmt::format("is sparse and takes {} bytes when dense, {} left", bytes, dense_left_));
  }
  dense_left_ -= bytes;
}

}  // namespace weightmill
