#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/checked.h"
#include "base/memory.h"

namespace sardonyx {

/// Bytes up to where the next part of a block may begin.
inline std::size_t aligned_bytes(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  return (size + kBlockAlignmentBytes - 1) / kBlockAlignmentBytes * kBlockAlignmentBytes;
}

/// Hands out parts of a block of scratch memory, each aligned to 64 bytes. Without memory it only
/// counts, so that one piece of code both sizes a block and divides it.
class ScratchCursor {
 public:
  explicit ScratchCursor(std::byte* memory = nullptr) : memory_(memory) {}

  template <typename T>
  T* take(std::int64_t count) {
    std::byte* part = memory_ == nullptr ? nullptr : memory_ + used_bytes_;
    const auto bytes = checked_multiply(count, static_cast<std::int64_t>(sizeof(T)));
    const bool fits = bytes && *bytes >= 0 && static_cast<std::size_t>(*bytes) <= kMost_bytes;
    used_bytes_ += fits ? aligned_bytes(*bytes) : kMost_bytes;
    used_bytes_ = std::min(used_bytes_, kMost_bytes);
    return reinterpret_cast<T*>(part);
  }
  /// What was taken; more than any machine has when a count was too large.
  std::size_t used_bytes() const { return used_bytes_; }

 private:
  static constexpr std::size_t kMost_bytes = std::size_t{1} << 60;

  std::byte* memory_;
  std::size_t used_bytes_ = 0;
};

}  // namespace sardonyx
