#include "base/memory.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>

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

}  // namespace sardonyx
