#include "atomic_file.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

namespace weightmill {
namespace {

/// Names of open temporary files, where a signal handler can find them without a lock. A slot holds a pointer to the
/// owner's string; more files than slots are still removed by their destructors, only not by a signal.
constexpr std::size_t kMaxTracked = 64;
std::array<std::atomic<const char*>, kMaxTracked> tracked{};

void track(const char* name) noexcept {
  for (auto& slot : tracked) {
    const char* empty = nullptr;
    if (slot.compare_exchange_strong(empty, name)) return;
  }
}

void untrack(const char* name) noexcept {
  for (auto& slot : tracked) {
    const char* expected = name;
    if (slot.compare_exchange_strong(expected, nullptr)) return;
  }
}

[[noreturn]] void refuse(const std::filesystem::path& path, const char* action) {
  fail(ErrorCode::bad_file, path.string(), std::string(action) + ": " + std::strerror(errno));
}

/// Renaming would put a regular file in the place of a device, pipe or folder.
void require_replaceable(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error && error != std::errc::no_such_file_or_directory) {
    fail(ErrorCode::bad_file, path.string(), "cannot be written: " + error.message());
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    fail(ErrorCode::bad_file, path.string(), "cannot be written: is no regular file");
  }
}

/// The mode a plain open() would give: mkstemp's 0600 would hide the result from the user's group.
mode_t default_mode() noexcept {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return static_cast<mode_t>(0666 & ~mask);
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  require_replaceable(path_);
  temporary_ = (path_.parent_path() / ("." + path_.filename().string() + ".XXXXXX")).string();
  fd_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (fd_ < 0) {
    temporary_.clear();
    refuse(path_, "cannot be written");
  }
  track(temporary_.c_str());
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_bytes_(other.size_bytes_) {
  untrack(other.temporary_.c_str());
  temporary_ = std::exchange(other.temporary_, {});
  if (!temporary_.empty()) track(temporary_.c_str());
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (temporary_.empty()) return;
  ::unlink(temporary_.c_str());
  untrack(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(path_, "cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    size_bytes_ += static_cast<std::uint64_t>(n);
  }
}

void AtomicFile::write(std::string_view text) {
  write(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

void AtomicFile::resize(std::uint64_t size) {
  const auto end = static_cast<off_t>(size);
  if (end < 0 || ::ftruncate(fd_, end) != 0 || ::lseek(fd_, end, SEEK_SET) < 0) refuse(path_, "cannot be written");
  size_bytes_ = size;
}

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(path_, "cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

void AtomicFile::read_at(std::uint64_t offset, std::span<std::uint8_t> bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = ::pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(path_, "cannot be read back");
    if (n == 0) fail(ErrorCode::bad_file, path_.string(), "cannot be read back: it is shorter than what was written");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

void AtomicFile::prepare(Flush flush) {
  if (::fchmod(fd_, default_mode()) != 0) refuse(path_, "cannot be written");
  if (flush == Flush::yes && ::fsync(fd_) != 0 && errno != EINVAL) {  // EINVAL: no syncing on this kind of file
    refuse(path_, "cannot be written");
  }
  if (::close(std::exchange(fd_, -1)) != 0) refuse(path_, "cannot be written");
}

void AtomicFile::commit(Flush flush) {
  if (fd_ >= 0) prepare(flush);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) refuse(path_, "cannot be put in place");
  untrack(temporary_.c_str());
  temporary_.clear();
}

void write_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  write_file(path, std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

void remove_unfinished_files() noexcept {
  for (auto& slot : tracked) {
    if (const char* name = slot.exchange(nullptr)) ::unlink(name);
  }
}

}  // namespace weightmill
