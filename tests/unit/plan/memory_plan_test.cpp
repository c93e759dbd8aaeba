#include "plan/memory_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace sardonyx;

namespace {

std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// The most bytes that are needed at one step.
std::size_t peak_bytes(const std::vector<BufferRequest>& requests) {
  std::size_t peak = 0;
  for (const BufferRequest& at : requests) {
    std::size_t live = 0;
    for (const BufferRequest& other : requests) {
      if (other.first <= at.first && at.first <= other.last) live += rounded(other.bytes);
    }
    peak = std::max(peak, live);
  }
  return peak;
}

}  // namespace

TEST_CASE("buffers that are needed at one time never overlap, at any sizes and lifetimes") {
  std::mt19937 random(1);
  const auto below = [&](std::uint32_t limit) {
    return std::uniform_int_distribution<std::uint32_t>(0, limit - 1)(random);
  };
  for (int turn = 0; turn < 400; ++turn) {
    std::vector<BufferRequest> requests;
    std::uint32_t step = 0;
    for (std::uint32_t i = below(60); i > 0; --i) {
      step += below(3);
      const std::size_t bytes = below(10) == 0 ? 0 : below(2000);
      const std::uint32_t last = below(8) == 0 ? 0xffffffffU : step + below(8);
      requests.push_back({bytes, step, last});
    }
    const MemoryPlan plan = plan_memory(requests);
    REQUIRE(plan.offsets.size() == requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      CHECK(plan.offsets[i] % 64 == 0);
      CHECK(plan.offsets[i] + requests[i].bytes <= plan.arena_bytes);
      for (std::size_t j = 0; j < i; ++j) {
        const bool is_together =
            requests[i].first <= requests[j].last && requests[j].first <= requests[i].last;
        if (!is_together) continue;
        const bool is_apart = plan.offsets[i] + requests[i].bytes <= plan.offsets[j] ||
                              plan.offsets[j] + requests[j].bytes <= plan.offsets[i];
        CHECK(is_apart);
      }
    }
    CHECK(plan.arena_bytes >= peak_bytes(requests));
  }
}

TEST_CASE("a chain of equal buffers takes the room of two") {
  std::vector<BufferRequest> requests;
  for (std::uint32_t i = 0; i < 100; ++i) requests.push_back({1000, i, i + 1});
  CHECK(plan_memory(requests).arena_bytes == 2048);
}

TEST_CASE("nothing takes no room") {
  CHECK(plan_memory({}).arena_bytes == 0);
  const std::vector<BufferRequest> empty = {{0, 0, 3}, {0, 1, 2}};
  CHECK(plan_memory(empty).arena_bytes == 0);
}
