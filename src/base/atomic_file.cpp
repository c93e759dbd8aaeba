#include "base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
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

/// Brings the rename itself to the disk. A folder that cannot be synced is no failure: the file
/// is whole either way.
void sync_folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
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
      buffer_(std::move(other.buffer_)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
  descriptor_ = -1;
}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  if (path.empty()) return failure(Code::InvalidArgument, "cannot write a file without a name");
  for (int i = 0; i < kNamesToTry; ++i) {
    std::string temporary = next_temporary_name(path);
    const int descriptor =
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor >= 0) return AtomicFile(path, std::move(temporary), descriptor);
    if (errno != EEXIST) return cannot_write(path, errno);
  }
  return cannot_write(path, EEXIST);
}

Status AtomicFile::flush() {
  const std::uint64_t offset = size_bytes_ - buffer_.size();
  if (const int error = write_all(descriptor_, buffer_, offset)) return cannot_write(path_, error);
  buffer_.clear();
  return {};
}

Status AtomicFile::append(std::span<const std::byte> bytes) {
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
  if (const int error = write_all(descriptor_, bytes, offset)) return cannot_write(path_, error);
  return {};
}

Status AtomicFile::commit() {
  SDX_TRY(flush());
  if (::fsync(descriptor_) != 0) return cannot_write(path_, errno);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return cannot_write(path_, errno);
  ::close(std::exchange(descriptor_, -1));
  sync_folder_of(path_);
  return {};
}

}  // namespace sardonyx
