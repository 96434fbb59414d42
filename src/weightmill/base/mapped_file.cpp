#include "mapped_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

namespace weightmill {
namespace {

/// Closes a file descriptor when it goes out of scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

[[noreturn]] void refuse(const std::string& name, const char* action) {
  fail(ErrorCode::bad_file, name, std::string(action) + ": " + std::strerror(errno));
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : name_(path.string()) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) refuse(name_, "cannot be opened");
  struct stat info{};
  if (::fstat(file.fd, &info) != 0) refuse(name_, "cannot be inspected");
  if (!S_ISREG(info.st_mode)) fail(ErrorCode::bad_file, name_, "is not a regular file");
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ == 0) return;  // mmap refuses empty ranges; an empty span is right
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) refuse(name_, "cannot be mapped");
  data_ = static_cast<const std::uint8_t*>(address);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::uint8_t*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), name_(std::move(other.name_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(name_, other.name_);
  return *this;
}

void MappedFile::release(std::size_t offset, std::size_t size) const noexcept {
  if (data_ == nullptr || offset >= size_) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t end = std::min(size_, offset + size);
  const std::size_t first = (offset + page - 1) / page * page;  // whole pages only: neighbours may still be in use
  const std::size_t last = end / page * page;
  if (first < last) ::madvise(const_cast<std::uint8_t*>(data_) + first, last - first, MADV_DONTNEED);
}

}  // namespace weightmill
