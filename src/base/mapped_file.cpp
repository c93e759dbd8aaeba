#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "base/text.h"

namespace sardonyx {

namespace {

struct Registry {
  std::mutex mutex;
  std::map<FileIdentity, std::weak_ptr<const MappedFile>> by_identity;
  std::map<const std::byte*, std::weak_ptr<const MappedFile>> by_address;
};

// Never destroyed: mappings may be dropped by threads that outlive static destructors.
Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

Status cannot_open(const std::string& path, int error) {
  const Code code = error == ENOMEM ? Code::OutOfMemory : Code::NoSuchFile;
  return failure(code, "cannot open '{}': {}", path, std::strerror(error));
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "of an unknown kind";
}

std::int64_t nanoseconds(const struct timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

Result<FileIdentity> identity_of(const struct stat& info, const std::string& path) {
  if (!S_ISREG(info.st_mode)) {
    return failure(Code::InvalidArgument, "'{}' is {}, not a regular file", path,
                   kind_of(info.st_mode));
  }
  FileIdentity identity;
  identity.device = static_cast<std::uint64_t>(info.st_dev);
  identity.inode = static_cast<std::uint64_t>(info.st_ino);
  identity.size_bytes = static_cast<std::uint64_t>(info.st_size);
#ifdef __APPLE__
  identity.modified_ns = nanoseconds(info.st_mtimespec);
  identity.changed_ns = nanoseconds(info.st_ctimespec);
#else
  identity.modified_ns = nanoseconds(info.st_mtim);
  identity.changed_ns = nanoseconds(info.st_ctim);
#endif
  return identity;
}

/// The path without links, or an error that names the path as it was given.
Result<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr),
                                                             &std::free);
  if (resolved == nullptr) return cannot_open(path, errno);
  return std::string(resolved.get());
}

std::shared_ptr<const MappedFile> find_mapped(const FileIdentity& identity) {
  std::shared_ptr<const MappedFile> file;  // let go of without the lock
  const std::lock_guard lock(registry().mutex);
  const auto entry = registry().by_identity.find(identity);
  if (entry == registry().by_identity.end()) return nullptr;
  file = entry->second.lock();
  return file != nullptr && !file->is_damaged() ? file : nullptr;
}

Result<std::span<const std::byte>> map(int descriptor, std::uint64_t size_bytes,
                                       const std::string& path) {
  if (size_bytes == 0) return std::span<const std::byte>();
  void* address =
      ::mmap(nullptr, static_cast<std::size_t>(size_bytes), PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED) {
    return failure(Code::OutOfMemory, "cannot map '{}' ({} bytes): {}", path, size_bytes,
                   std::strerror(errno));
  }
#ifdef MADV_HUGEPAGE
  // A file that is not in the page cache yet is read in pieces of 2 MiB and keeps lying in them:
  // three times as fast to read, and from then on up to twice as fast to go through (measured).
  ::madvise(address, static_cast<std::size_t>(size_bytes), MADV_HUGEPAGE);
#endif
  return std::span(static_cast<const std::byte*>(address), static_cast<std::size_t>(size_bytes));
}

/// Makes the file known, unless another thread was quicker: then returns that one's.
std::shared_ptr<const MappedFile> publish(std::shared_ptr<const MappedFile> file) {
  std::shared_ptr<const MappedFile> earlier;  // let go of without the lock
  const std::lock_guard lock(registry().mutex);
  auto& known = registry().by_identity[file->identity()];
  earlier = known.lock();
  if (earlier != nullptr && !earlier->is_damaged()) return earlier;
  known = file;
  if (file->size() != 0) registry().by_address[file->bytes().data()] = file;
  return file;
}

}  // namespace

MappedFile::MappedFile(Private, std::string path, FileIdentity identity,
                       std::span<const std::byte> bytes)
    : path_(std::move(path)), identity_(identity), bytes_(bytes) {
  guard_.emplace(bytes_);
}

MappedFile::~MappedFile() {
  {
    const std::lock_guard lock(registry().mutex);
    // A second mapping that lost the race in publish() must not remove the first one's entries.
    const auto by_identity = registry().by_identity.find(identity_);
    if (by_identity != registry().by_identity.end() && by_identity->second.expired()) {
      registry().by_identity.erase(by_identity);
    }
    registry().by_address.erase(bytes_.data());
  }
  guard_.reset();
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  SDX_ASSIGN(std::string real, real_path(path));
  // Looked at before it is opened: opening a device or a pipe can have effects or wait.
  SDX_TRY(identify_file(path).take_status());
  const Descriptor descriptor(::open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (descriptor.number() < 0) return cannot_open(path, errno);
  struct stat info{};
  if (::fstat(descriptor.number(), &info) != 0) return cannot_open(path, errno);
  SDX_ASSIGN(const FileIdentity identity, identity_of(info, path));
  if (auto known = find_mapped(identity)) return known;
  SDX_ASSIGN(const auto bytes, map(descriptor.number(), identity.size_bytes, path));
  return publish(std::make_shared<const MappedFile>(Private{}, std::move(real), identity, bytes));
}

std::shared_ptr<const MappedFile> MappedFile::containing(const void* address) {
  const auto* byte = static_cast<const std::byte*>(address);
  std::shared_ptr<const MappedFile> file;
  {
    const std::lock_guard lock(registry().mutex);
    auto entry = registry().by_address.upper_bound(byte);
    if (entry == registry().by_address.begin()) return nullptr;
    file = std::prev(entry)->second.lock();
  }
  if (file == nullptr || byte >= file->bytes().data() + file->size()) return nullptr;
  return file;
}

std::vector<std::shared_ptr<const MappedFile>> MappedFile::among(
    std::span<const std::shared_ptr<const void>> objects) {
  std::vector<std::shared_ptr<const MappedFile>> files;
  std::vector<std::shared_ptr<const MappedFile>> passed;  // let go of without the lock
  const std::lock_guard lock(registry().mutex);
  for (const auto& [address, known] : registry().by_address) {
    auto file = known.lock();
    const auto is_it = [&](const auto& object) { return object.get() == file.get(); };
    const bool is_wanted = file != nullptr && std::any_of(objects.begin(), objects.end(), is_it);
    (is_wanted ? files : passed).push_back(std::move(file));
  }
  return files;
}

bool MappedFile::is_cut() const {
  if (is_damaged()) return true;
  struct stat info{};
  return ::stat(path_.c_str(), &info) == 0 &&
         static_cast<std::uint64_t>(info.st_dev) == identity_.device &&
         static_cast<std::uint64_t>(info.st_ino) == identity_.inode &&
         static_cast<std::uint64_t>(info.st_size) < identity_.size_bytes;
}

Status cut_file(const MappedFile& file) {
  return failure(Code::InvalidModel,
                 "'{}' was cut short while it was mapped: it had {} bytes when it was opened",
                 file.path(), file.size());
}

Hash128 MappedFile::hash() const {
  constexpr std::size_t kPiece_bytes = std::size_t{4} << 20;
  Hasher hasher;
  for (std::size_t begin = 0; begin < bytes_.size(); begin += kPiece_bytes) {
    const auto piece = bytes_.subspan(begin, std::min(kPiece_bytes, bytes_.size() - begin));
    hasher.add(piece);
    release(piece);
  }
  return hasher.result();
}

void MappedFile::release(std::span<const std::byte> range) {
  constexpr std::uintptr_t kPage_bytes = 4096;
  const auto begin = reinterpret_cast<std::uintptr_t>(range.data());
  const std::uintptr_t first = (begin + kPage_bytes - 1) / kPage_bytes * kPage_bytes;
  const std::uintptr_t last = (begin + range.size()) / kPage_bytes * kPage_bytes;
  if (first >= last) return;
  ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

Result<FileIdentity> identify_file(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return cannot_open(path, errno);
  return identity_of(info, path);
}

}  // namespace sardonyx
