#include "base/memory.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <vector>

namespace sardonyx {

TEST_CASE("a block is aligned and can be written to its end") {
  for (const std::size_t bytes : std::initializer_list<std::size_t>{0, 1, 63, 64, 65, 4097}) {
    void* block = allocate_aligned(bytes);
    REQUIRE(block != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % kBlockAlignmentBytes == 0);
    std::memset(block, 1, bytes);
    std::free(block);
  }
}

TEST_CASE("more than the machine has is refused, even where the system would promise it") {
  const std::size_t available = available_memory_bytes();
  CHECK(available > 0);
  if (available < std::numeric_limits<std::size_t>::max() / 4) {
    CHECK(allocate_aligned(available * 2 + kCheckedBlockBytes) == nullptr);
  }
  CHECK(allocate_aligned(std::numeric_limits<std::size_t>::max()) == nullptr);
  CHECK(allocate_aligned(std::numeric_limits<std::size_t>::max() - 64) == nullptr);
}

#ifdef __linux__
namespace {

/// Bytes of memory that this process has and that no file backs.
std::size_t anonymous_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  REQUIRE(file != nullptr);
  unsigned long pages[3] = {};
  const int fields = std::fscanf(file, "%lu %lu %lu", &pages[0], &pages[1], &pages[2]);
  std::fclose(file);
  REQUIRE(fields == 3);
  return (pages[1] - pages[2]) * 4096;
}

}  // namespace

// The sanitizers' heaps are their own.
#ifndef __SANITIZE_ADDRESS__
#ifndef __SANITIZE_THREAD__
TEST_CASE("memory that is freed under a scope goes back to the system") {
  constexpr std::size_t kBlock_bytes = 64 << 10;
  constexpr std::size_t kCount = 1024;
  const std::size_t before = anonymous_bytes();
  void* kept = nullptr;
  {
    const FreedMemoryScope scope;
    std::vector<void*> blocks;
    for (std::size_t i = 0; i < kCount; ++i) {
      blocks.push_back(std::malloc(kBlock_bytes));
      std::memset(blocks.back(), 1, kBlock_bytes);
    }
    CHECK(anonymous_bytes() > before + kCount * kBlock_bytes / 2);
    // The last one stays, so that the heap cannot shrink from its end.
    for (std::size_t i = 0; i + 1 < kCount; ++i) std::free(blocks[i]);
    kept = blocks.back();
  }
  CHECK(anonymous_bytes() < before + kCount * kBlock_bytes / 2);
  std::free(kept);
}
#endif
#endif
#endif

}  // namespace sardonyx
