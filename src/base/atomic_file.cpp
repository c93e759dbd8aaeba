#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/text.h"

namespace sardonyx {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
constexpr int kNamesToTry = 100;

std::string next_temporary_name(const std::string& path) {
  static std::atomic<std::uint32_t> counter{0};
  return fmt::format("{}.{}-{}.tmp", path, ::getpid(), counter.fetch_add(1));
}

Status cannot_write(const std::string& path, int error) {
  return failure(Code::InvalidArgument, "cannot write '{}': {}", path, std::strerror(error));
}

/// A device or a pipe would be replaced by a file: whoever may write everywhere would lose it.
Status check_replaceable(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode) || S_ISLNK(info.st_mode)) {
    return {};
  }
  if (S_ISDIR(info.st_mode)) return cannot_write(path, EISDIR);
  return failure(Code::InvalidArgument,
                 "cannot write '{}': a device, pipe or socket has that name, which a file would "
                 "replace",
                 path);
}

/// Writes all bytes at `offset`; 0 or the system's error.
int write_all(int descriptor, std::span<const std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return 0;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// Brings the rename itself to the disk. A folder that cannot be synced is no failure: the file
/// is whole either way.
void sync_folder_of(const std::string& path) {
  const std::string folder = folder_of(path);
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

AtomicFile::AtomicFile(std::string path, std::string temporary, int descriptor)
    : path_(std::move(path)), temporary_(std::move(temporary)), descriptor_(descriptor) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_bytes_(other.size_bytes_),
      former_bytes_(other.former_bytes_),
      is_synced_(other.is_synced_),
      buffer_(std::move(other.buffer_)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(former_bytes_, other.former_bytes_);
  std::swap(is_synced_, other.is_synced_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (descriptor_ < 0) return;
  // A tail that cannot be cut off does no harm: the next writer cuts it.
  if (!is_new()) (void)!::ftruncate(descriptor_, static_cast<off_t>(former_bytes_));
  ::close(descriptor_);
  if (is_new()) ::unlink(temporary_.c_str());
  descriptor_ = -1;
}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  if (path.empty()) return failure(Code::InvalidArgument, "cannot write a file without a name");
  SDX_TRY(check_replaceable(path));
  for (int i = 0; i < kNamesToTry; ++i) {
    std::string temporary = next_temporary_name(path);
    const int descriptor =
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor >= 0) return AtomicFile(path, std::move(temporary), descriptor);
    if (errno != EEXIST) return cannot_write(path, errno);
  }
  return cannot_write(path, EEXIST);
}

Result<AtomicFile> AtomicFile::extend(const std::string& path, std::uint64_t end) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return cannot_write(path, errno);
  AtomicFile file(path, "", descriptor);
  file.former_bytes_ = end;
  file.size_bytes_ = end;
  if (::ftruncate(descriptor, static_cast<off_t>(end)) != 0) return cannot_write(path, errno);
  return file;
}

Status AtomicFile::flush() {
  const std::uint64_t offset = size_bytes_ - buffer_.size();
  if (const int error = write_all(descriptor_, buffer_, offset)) return cannot_write(path_, error);
  buffer_.clear();
  return {};
}

Status AtomicFile::append(std::span<const std::byte> bytes) {
  is_synced_ = false;
  if (buffer_.size() + bytes.size() > kBufferBytes) SDX_TRY(flush());
  if (bytes.size() < kBufferBytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  } else if (const int error = write_all(descriptor_, bytes, size_bytes_)) {
    return cannot_write(path_, error);
  }
  size_bytes_ += bytes.size();
  return {};
}

Status AtomicFile::pad_to(std::size_t alignment_bytes) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  std::uint64_t missing = (alignment_bytes - size_bytes_ % alignment_bytes) % alignment_bytes;
  while (missing != 0) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(missing, kZeros.size()));
    SDX_TRY(append(std::span(kZeros).first(count)));
    missing -= count;
  }
  return {};
}

Status AtomicFile::overwrite(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (offset > size_bytes_ || bytes.size() > size_bytes_ - offset) {
    return failure(Code::Internal, "bytes {} to {} of '{}' were not written before", offset,
                   offset + bytes.size(), path_);
  }
  SDX_TRY(flush());
  is_synced_ = false;
  if (const int error = write_all(descriptor_, bytes, offset)) return cannot_write(path_, error);
  return {};
}

Status AtomicFile::sync() {
  if (is_synced_) return {};
  SDX_TRY(flush());
  if (::fsync(descriptor_) != 0) return cannot_write(path_, errno);
  is_synced_ = true;
  return {};
}

Status AtomicFile::commit() {
  SDX_TRY(sync());
  if (!is_new()) {
    ::close(std::exchange(descriptor_, -1));
    return {};
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return cannot_write(path_, errno);
  ::close(std::exchange(descriptor_, -1));
  sync_folder_of(path_);
  return {};
}

void remove_unfinished(const std::string& path) {
  const std::string prefix = path.substr(path.rfind('/') + 1) + ".";
  std::error_code error;
  std::filesystem::directory_iterator entries(folder_of(path), error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".tmp")) {
      std::error_code ignored;
      std::filesystem::remove(entries->path(), ignored);
    }
  }
}

Result<FolderLock> FolderLock::take(const std::string& path, const std::atomic<bool>* cancel) {
  const std::string folder = folder_of(path);
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return cannot_write(path, errno);
  FolderLock lock(descriptor);
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    // A file system without locks: writers are on their own.
    if (errno != EWOULDBLOCK && errno != EINTR) break;
    if (cancel != nullptr && cancel->load()) {
      return failure(Code::Cancelled, "waiting to write into '{}' was cancelled", folder);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return lock;
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace sardonyx
