#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "base/status.h"

namespace sardonyx {

/// Memory for tensors whose sizes only the run itself tells. Blocks are kept for the next run of
/// the same frame, and those that a whole run did not need are given back. One thread at a time.
class RunHeap {
 public:
  RunHeap() = default;
  ~RunHeap();
  RunHeap(RunHeap&& other) noexcept = default;
  RunHeap& operator=(RunHeap&&) = delete;

  /// At least `bytes` bytes, 64-byte aligned; null when there is no memory.
  std::byte* allocate(std::size_t bytes);
  /// Takes back what allocate() returned.
  void release(std::byte* block);
  /// Gives blocks back to the system that were not used since the last call.
  void trim();

 private:
  struct Block {
    std::byte* memory;
    bool is_used;
  };
  std::multimap<std::size_t, Block> free_;
  std::map<std::byte*, std::size_t> taken_;
};

}  // namespace sardonyx
