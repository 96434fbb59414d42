#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace weightmill {

/// A file that appears whole or not at all: bytes go to a temporary file beside `path`, and commit() renames it into
/// place. Destroyed without commit(), it removes the temporary file. Move-only.
class AtomicFile {
 public:
  /// Throws: bad_file if the directory does not exist or cannot be written (names the path and the reason).
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends. Throws: bad_file if the disk is full or the write fails for another reason.
  void write(std::span<const std::uint8_t> bytes);
  void write(std::string_view text);

  /// Makes the file `size` bytes long: cuts the end off or adds zeros. Throws: as write().
  void resize(std::uint64_t size);
  /// Writes over what is at `offset`, within the file; several threads may, at different places. Throws: as write().
  void write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes);
  /// Reads back what was written. Throws: bad_file if the read fails or meets the end of the file.
  void read_at(std::uint64_t offset, std::span<std::uint8_t> bytes) const;

  std::uint64_t size_bytes() const noexcept { return size_bytes_; }

  /// Whether commit() waits until the bytes are on the disk. Without, a file is whole after any end of the process, but
  /// a machine that loses power within seconds may lose it.
  enum class Flush : std::uint8_t { yes, no };

  /// Does all of commit() but the renaming, so that files that belong together can follow each other into place with
  /// nothing in between that may fail for want of space. Nothing can be written afterwards. Throws: as commit().
  void prepare(Flush flush = Flush::yes);

  /// Flushes to the disk and renames into place. Throws: bad_file; the old file, if any, is then untouched.
  void commit(Flush flush = Flush::yes);

 private:
  std::filesystem::path path_;
  std::string temporary_;
  int fd_ = -1;
  std::uint64_t size_bytes_ = 0;
};

/// Writes `bytes` to `path` atomically. Throws: as AtomicFile.
void write_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);
void write_file(const std::filesystem::path& path, std::string_view text);

/// Removes the temporary files of all AtomicFiles that are open now. Async-signal-safe: for a handler of SIGINT or
/// SIGTERM that then ends the process.
void remove_unfinished_files() noexcept;

}  // namespace weightmill
