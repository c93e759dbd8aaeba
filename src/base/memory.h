#pragma once

#include <cstddef>

namespace sardonyx {

/// Alignment of every block of allocate_aligned: a cache line, and the widest vector register.
inline constexpr std::size_t kBlockAlignmentBytes = 64;

/// Blocks from this size on are only handed out while the machine has the memory: systems promise
/// more than they have, and end a process when it takes them at their word.
inline constexpr std::size_t kCheckedBlockBytes = std::size_t{256} << 20;

/// Bytes that this process can still take without being ended for it: what the system has left,
/// within the limit of the control group. The largest number when that is not known.
/// Cost     reads two or three small files of /proc and /sys: some 20 us.
std::size_t available_memory_bytes();

/// A block of at least `bytes` (at least one), to be released by std::free; null when it cannot be
/// had, or when it is large (kCheckedBlockBytes) and more than is available.
void* allocate_aligned(std::size_t bytes);

/// Gives memory back to the system that was freed while this stood, if that is much: allocators
/// keep it for the next caller, who after loading a model may never come.
class FreedMemoryScope {
 public:
  FreedMemoryScope();
  ~FreedMemoryScope();
  FreedMemoryScope(const FreedMemoryScope&) = delete;
  FreedMemoryScope& operator=(const FreedMemoryScope&) = delete;

 private:
  std::size_t free_bytes_;
};

}  // namespace sardonyx
