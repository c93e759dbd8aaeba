#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sardonyx {

/// A buffer that is needed from step `first` to step `last`, both included.
struct BufferRequest {
  std::size_t bytes = 0;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

struct MemoryPlan {
  /// Offset of each request; multiples of 64.
  std::vector<std::size_t> offsets;
  std::size_t arena_bytes = 0;
};

/// Lays buffers into one arena so that those needed at the same time do not overlap.
///
/// Cost     near-linear: each request goes to the best free gap at its first step. Requests are
///          given in order of their first step.
MemoryPlan plan_memory(std::span<const BufferRequest> requests);

}  // namespace sardonyx
