#include "payload_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "parallel.h"

namespace weightmill {
namespace {

/// Odd, with bits all over: the golden ratio's fraction.
constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15u;

std::uint64_t mix(std::uint64_t state, std::uint64_t word) noexcept { return std::rotl((state ^ word) * kMix, 29); }

std::uint64_t load_word(const std::uint8_t* bytes) noexcept {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

}  // namespace

std::uint64_t quick_digest(std::span<const std::uint8_t> bytes) noexcept {
  std::array<std::uint64_t, 4> lanes{1, 2, 3, 4};  // four, as the multiplications of one wait for each other
  std::size_t i = 0;
  for (; i + 32 <= bytes.size(); i += 32) {
    for (std::size_t k = 0; k < 4; ++k) lanes[k] = mix(lanes[k], load_word(bytes.data() + i + 8 * k));
  }
  std::array<std::uint8_t, 32> rest{};
  if (i < bytes.size()) std::memcpy(rest.data(), bytes.data() + i, bytes.size() - i);
  std::uint64_t digest = bytes.size();
  for (std::size_t k = 0; k < 4; ++k) digest = mix(digest, mix(lanes[k], load_word(rest.data() + 8 * k)));
  return digest ^ digest >> 32;
}

std::vector<std::uint8_t> PayloadFile::borrow_buffer() {
  const std::scoped_lock lock(mutex_);
  if (buffers_.empty()) return std::vector<std::uint8_t>(kBlockBytes);
  std::vector<std::uint8_t> buffer = std::move(buffers_.back());
  buffers_.pop_back();
  return buffer;
}

void PayloadFile::return_buffer(std::vector<std::uint8_t> buffer) {
  const std::scoped_lock lock(mutex_);
  buffers_.push_back(std::move(buffer));
}

/// Fills and writes the payload; returns its digest.
std::uint64_t PayloadFile::make_blocks(std::uint64_t start, std::uint64_t size, unsigned jobs, const Fill& fill) {
  const std::size_t n_blocks = (size + kBlockBytes - 1) / kBlockBytes;
  std::vector<std::uint64_t> digests(n_blocks);
  parallel_for(n_blocks, jobs, [&](std::size_t b) {
    const std::uint64_t offset = std::uint64_t{b} * kBlockBytes;
    std::vector<std::uint8_t> buffer = borrow_buffer();
    const auto block = std::span(buffer).first(std::min<std::uint64_t>(kBlockBytes, size - offset));
    fill(offset, block);
    digests[b] = quick_digest(block);
    if (file_) file_->write_at(start + offset, block);
    return_buffer(std::move(buffer));
  });
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(digests.data());
  return quick_digest({bytes, 8 * digests.size()}) ^ size * kMix;
}

bool PayloadFile::equal_in_file(std::uint64_t a, std::uint64_t b, std::uint64_t size) {
  if (!file_) return true;
  std::vector<std::uint8_t> left = borrow_buffer(), right = borrow_buffer();
  bool equal = true;
  for (std::uint64_t done = 0; equal && done < size; done += kBlockBytes) {
    const std::size_t n = std::min<std::uint64_t>(kBlockBytes, size - done);
    file_->read_at(a + done, std::span(left).first(n));
    file_->read_at(b + done, std::span(right).first(n));
    equal = std::memcmp(left.data(), right.data(), n) == 0;
  }
  return_buffer(std::move(left));
  return_buffer(std::move(right));
  return equal;
}

void PayloadFile::resize(std::uint64_t size) {
  if (file_) file_->resize(size);
  size_bytes_ = size;
}

std::optional<std::uint64_t> PayloadFile::store(std::uint64_t size, unsigned jobs, const Fill& fill,
                                                const std::function<bool()>& accept) {
  const std::uint64_t start = size_bytes_;
  resize(start + size);
  const std::uint64_t digest = make_blocks(start, size, jobs, fill);
  if (!accept()) {
    resize(start);
    return std::nullopt;
  }
  const auto [entry, is_new] = known_.try_emplace(digest, start);
  const bool fits = !is_new && entry->second + size <= start;  // else the digest is that of a payload of another size
  if (!fits || !equal_in_file(entry->second, start, size)) return start;
  resize(start);
  return entry->second;
}

}  // namespace weightmill
