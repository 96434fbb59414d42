#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "atomic_file.h"

namespace weightmill {

/// A file of payloads one after the other, equal ones stored once. A payload is made block by block on several threads,
/// so that memory does not grow with its size; the bytes of the file do not depend on the number of threads.
class PayloadFile {
 public:
  /// A multiple of every element size; two of them, what they are made from and the digest fit the second-level cache.
  static constexpr std::size_t kBlockBytes = std::size_t{256} << 10;

  /// Writes bytes [offset, offset + block.size()) of a payload to `block`. `offset` is a multiple of kBlockBytes.
  using Fill = std::function<void(std::uint64_t offset, std::span<std::uint8_t> block)>;

  /// Throws: as AtomicFile.
  explicit PayloadFile(const std::filesystem::path& path) : file_(std::in_place, path) {}
  /// Goes through everything and keeps nothing, to learn the sizes; equal digests pass for equal payloads.
  PayloadFile() = default;

  /// Stores the `size` bytes that `fill` makes and returns their offset, that of an equal payload where there is one.
  /// `accept` is asked once they are made: if it says no, the file is as before and there is no offset.
  /// Throws: bad_file if the disk is full or the write fails; whatever `fill` throws.
  std::optional<std::uint64_t> store(std::uint64_t size, unsigned jobs, const Fill& fill,
                                     const std::function<bool()>& accept = [] { return true; });

  std::uint64_t size_bytes() const noexcept { return size_bytes_; }

  /// As AtomicFile::commit(), without waiting for the disk: that would take longer than all the rest. Requires a path.
  void commit() { file_.value().commit(AtomicFile::Flush::no); }

 private:
  std::vector<std::uint8_t> borrow_buffer();
  void return_buffer(std::vector<std::uint8_t> buffer);
  bool equal_in_file(std::uint64_t a, std::uint64_t b, std::uint64_t size);
  std::uint64_t make_blocks(std::uint64_t start, std::uint64_t size, unsigned jobs, const Fill& fill);

  void resize(std::uint64_t size);

  std::optional<AtomicFile> file_;
  std::uint64_t size_bytes_ = 0;
  std::mutex mutex_;
  std::vector<std::vector<std::uint8_t>> buffers_;          ///< blocks not in use now
  std::unordered_map<std::uint64_t, std::uint64_t> known_;  ///< digest of size and content -> offset of the first
};

/// A digest to find equal bytes by; equal digests prove nothing.
std::uint64_t quick_digest(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace weightmill
