#include "base/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace sardonyx {

namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
// Blocks from this size on lie in huge pages: one fault in place of 512, and fewer misses of the
// address translation. What is rounded up is small against them.
constexpr std::size_t kHugeBlockBytes = std::size_t{8} << 20;
constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File open_file(const char* path) { return File(std::fopen(path, "r"), &std::fclose); }

/// The number that a file holds; nothing known when there is none ("max").
std::size_t number_in(const char* path) {
  const File file = open_file(path);
  unsigned long long number = 0;
  if (file == nullptr || std::fscanf(file.get(), "%llu", &number) != 1) return kUnlimited;
  return static_cast<std::size_t>(number);
}

/// MemAvailable of /proc/meminfo.
std::size_t system_available_bytes() {
  const File file = open_file("/proc/meminfo");
  if (file == nullptr) return kUnlimited;
  char line[128];
  while (std::fgets(line, sizeof(line), file.get()) != nullptr) {
    unsigned long long kib = 0;
    if (std::sscanf(line, "MemAvailable: %llu", &kib) == 1) {
      return static_cast<std::size_t>(kib) * 1024;
    }
  }
  return kUnlimited;
}

/// What is left below a limit; the used part counts caches that can be dropped, so it is halved
/// rather than believed.
std::size_t group_available_bytes() {
  const std::size_t limit = number_in("/sys/fs/cgroup/memory.max");
  if (limit == kUnlimited) return kUnlimited;
  const std::size_t used = number_in("/sys/fs/cgroup/memory.current");
  return used == kUnlimited ? limit : limit - std::min(limit, used / 2);
}

}  // namespace

std::size_t available_memory_bytes() {
  return std::min(system_available_bytes(), group_available_bytes());
}

void* allocate_aligned(std::size_t bytes) {
  if (bytes > kUnlimited - kBlockAlignmentBytes) return nullptr;
  if (bytes >= kCheckedBlockBytes && bytes > available_memory_bytes()) return nullptr;
  const bool is_large = bytes >= kHugeBlockBytes;
  const std::size_t alignment = is_large ? kHugePageBytes : kBlockAlignmentBytes;
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + kBlockAlignmentBytes - 1) /
                              kBlockAlignmentBytes * kBlockAlignmentBytes;
  void* memory = nullptr;
  if (::posix_memalign(&memory, alignment, rounded) != 0) return nullptr;
#ifdef MADV_HUGEPAGE
  if (is_large) ::madvise(memory, rounded, MADV_HUGEPAGE);
#endif
  return memory;
}

namespace {

/// Bytes that the heap holds without using them.
std::size_t free_heap_bytes() {
#ifdef __GLIBC__
  return ::mallinfo2().fordblks;
#else
  return 0;
#endif
}

}  // namespace

FreedMemoryScope::FreedMemoryScope() : free_bytes_(free_heap_bytes()) {}

FreedMemoryScope::~FreedMemoryScope() {
#ifdef __GLIBC__
  constexpr std::size_t kMuch_bytes = std::size_t{8} << 20;
  if (free_heap_bytes() > free_bytes_ + kMuch_bytes) ::malloc_trim(0);
#endif
}

}  // namespace sardonyx
