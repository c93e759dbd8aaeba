#include "plugin/device_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace sardonyx::plugin {

namespace {

constexpr std::size_t kPage_bytes = 4096;

std::size_t whole_pages(std::size_t bytes) {
  return std::max<std::size_t>((bytes + kPage_bytes - 1) / kPage_bytes, 1) * kPage_bytes;
}

}  // namespace

Result<std::unique_ptr<DeviceMemory>> DeviceMemory::create(std::uint64_t size_bytes) {
  const std::size_t size = whole_pages(size_bytes);
  const int file = ::memfd_create("sardonyx-device", MFD_CLOEXEC);
  void* shown = MAP_FAILED;
  void* open = MAP_FAILED;
  if (file >= 0 && ::ftruncate(file, static_cast<off_t>(size)) == 0) {
    shown = ::mmap(nullptr, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
    open = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  }
  const int error = errno;
  if (file >= 0) ::close(file);
  if (shown != MAP_FAILED && open != MAP_FAILED) {
    return std::make_unique<DeviceMemory>(Private{}, static_cast<std::byte*>(shown),
                                          static_cast<std::byte*>(open), size);
  }
  if (shown != MAP_FAILED) ::munmap(shown, size);
  return failure(Code::OutOfMemory, "no {} bytes of addresses for the memory of a device: {}", size,
                 std::strerror(error));
}

DeviceMemory::DeviceMemory(Private, std::byte* shown, std::byte* open, std::size_t size_bytes)
    : shown_(shown), open_(open), size_bytes_(size_bytes), free_{{0, size_bytes}} {}

DeviceMemory::~DeviceMemory() {
  ::munmap(shown_, size_bytes_);
  ::munmap(open_, size_bytes_);
}

void* DeviceMemory::allocate(std::size_t size_bytes) {
  if (size_bytes > size_bytes_ || ::getpid() != maker_) return nullptr;
  const std::size_t size = whole_pages(size_bytes);
  const std::lock_guard lock(mutex_);
  const auto block = std::find_if(free_.begin(), free_.end(),
                                  [&](const auto& entry) { return entry.second >= size; });
  if (block == free_.end()) return nullptr;
  const auto [offset, room] = *block;
  free_.erase(block);
  if (room > size) free_.emplace(offset + size, room - size);
  taken_.emplace(offset, size);
  used_bytes_ += size;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  return shown_ + offset;
}

void DeviceMemory::release(void* address) {
  if (address == nullptr || !holds(address) || ::getpid() != maker_) return;
  const std::lock_guard lock(mutex_);
  const auto found =
      taken_.find(static_cast<std::size_t>(static_cast<std::byte*>(address) - shown_));
  if (found == taken_.end()) return;
  auto [offset, size] = *found;
  taken_.erase(found);
  used_bytes_ -= size;
  // Gives the pages back; what the system cannot take back stays until the device goes.
  (void)::madvise(open_ + offset, size, MADV_REMOVE);
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + size) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  free_.emplace(offset, size);
}

std::size_t DeviceMemory::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_bytes_;
}

std::size_t DeviceMemory::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

}  // namespace sardonyx::plugin
