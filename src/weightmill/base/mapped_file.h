#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace weightmill {

/// A file mapped read-only; its bytes stay valid for the life of the object. Move-only.
///
/// Pages that have been read can be given back with release(), so that walking through a large file does not grow the
/// process. A file that another program shortens while it is mapped is outside what this class can guard against.
class MappedFile {
 public:
  /// Throws: bad_file if `path` does not exist, is no regular file, or cannot be read (names the path and the reason).
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::uint8_t> bytes() const noexcept { return {data_, size_}; }
  const std::string& name() const noexcept { return name_; }

  /// Tells the system that bytes [offset, offset + size) will not be read again soon: their pages leave the process.
  void release(std::size_t offset, std::size_t size) const noexcept;

 private:
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  std::string name_;
};

}  // namespace weightmill
