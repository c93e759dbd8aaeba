#include "plan/memory_plan.h"

#include <iterator>
#include <map>
#include <queue>
#include <set>

namespace sardonyx {

namespace {

constexpr std::size_t kUnit_bytes = 64;

/// Free gaps of the arena by offset and by size; the space above `end_` is free without bound.
class Gaps {
 public:
  std::size_t take(std::size_t bytes) {
    const auto best = by_size_.lower_bound({bytes, 0});
    if (best != by_size_.end()) {
      const auto [size, offset] = *best;
      erase(by_offset_.find(offset));
      if (size > bytes) insert(offset + bytes, size - bytes);
      return offset;
    }
    // The last gap grows when it touches the end.
    if (!by_offset_.empty()) {
      const auto last = std::prev(by_offset_.end());
      if (last->first + last->second == end_) {
        const std::size_t offset = last->first;
        erase(last);
        end_ = offset + bytes;
        return offset;
      }
    }
    const std::size_t offset = end_;
    end_ += bytes;
    return offset;
  }

  void give(std::size_t offset, std::size_t bytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && offset + bytes == next->first) {
      bytes += next->second;
      next = erase(next);
    }
    if (next != by_offset_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        offset = previous->first;
        bytes += previous->second;
        erase(previous);
      }
    }
    insert(offset, bytes);
  }

  std::size_t end() const { return end_; }

 private:
  using ByOffset = std::map<std::size_t, std::size_t>;

  void insert(std::size_t offset, std::size_t bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }

  ByOffset::iterator erase(ByOffset::iterator gap) {
    by_size_.erase({gap->second, gap->first});
    return by_offset_.erase(gap);
  }

  ByOffset by_offset_;
  /// {bytes, offset}.
  std::set<std::pair<std::size_t, std::size_t>> by_size_;
  std::size_t end_ = 0;
};

}  // namespace

MemoryPlan plan_memory(std::span<const BufferRequest> requests) {
  struct Busy {
    std::uint32_t last;
    std::size_t offset;
    std::size_t bytes;
    bool operator<(const Busy& other) const { return last > other.last; }
  };
  MemoryPlan plan;
  plan.offsets.reserve(requests.size());
  std::priority_queue<Busy> busy;
  Gaps gaps;
  for (const BufferRequest& request : requests) {
    while (!busy.empty() && busy.top().last < request.first) {
      gaps.give(busy.top().offset, busy.top().bytes);
      busy.pop();
    }
    const std::size_t bytes =
        (request.bytes + kUnit_bytes - 1) / kUnit_bytes * kUnit_bytes;
    if (bytes == 0) {
      plan.offsets.push_back(0);
      continue;
    }
    const std::size_t offset = gaps.take(bytes);
    plan.offsets.push_back(offset);
    busy.push({request.last, offset, bytes});
  }
  plan.arena_bytes = gaps.end();
  return plan;
}

}  // namespace sardonyx
