#include "exec/run_heap.h"

#include <bit>
#include <cstdlib>

#include "base/memory.h"

namespace sardonyx {

namespace {

/// Sizes are rounded up by at most an eighth, so that blocks fit again when shapes change a little.
std::size_t size_class(std::size_t bytes) {
  constexpr std::size_t kLeast_bytes = 256;
  if (bytes <= kLeast_bytes) return kLeast_bytes;
  const std::size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

}  // namespace

RunHeap::~RunHeap() {
  for (const auto& [bytes, block] : free_) std::free(block.memory);
  for (const auto& [memory, bytes] : taken_) std::free(memory);
}

std::byte* RunHeap::allocate(std::size_t bytes) {
  if (bytes > std::size_t{1} << 62) return nullptr;
  const std::size_t rounded = (size_class(bytes) + 63) / 64 * 64;
  const auto found = free_.lower_bound(rounded);
  if (found != free_.end() && found->first <= 2 * rounded) {
    std::byte* memory = found->second.memory;
    taken_.emplace(memory, found->first);
    free_.erase(found);
    return memory;
  }
  auto* memory = static_cast<std::byte*>(allocate_aligned(rounded));
  if (memory != nullptr) taken_.emplace(memory, rounded);
  return memory;
}

void RunHeap::release(std::byte* block) {
  const auto found = taken_.find(block);
  if (found == taken_.end()) return;
  free_.emplace(found->second, Block{block, true});
  taken_.erase(found);
}

void RunHeap::trim() {
  for (auto entry = free_.begin(); entry != free_.end();) {
    if (entry->second.is_used) {
      entry->second.is_used = false;
      ++entry;
    } else {
      std::free(entry->second.memory);
      entry = free_.erase(entry);
    }
  }
}

}  // namespace sardonyx
