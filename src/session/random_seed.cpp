#include "session/random_seed.h"

#include <atomic>
#include <mutex>
#include <optional>

namespace sardonyx {

namespace {

/// Process-wide because the call in the C interface names no environment.
struct SeedState {
  std::atomic<std::uint64_t> epoch{0};
  std::mutex mutex;
  std::uint64_t seed = 0;
  std::uint64_t next_stream = 0;
};

SeedState& state() {
  static SeedState& instance = *new SeedState;
  return instance;
}

}  // namespace

void set_random_seed(std::int64_t seed) {
  SeedState& shared = state();
  const std::lock_guard lock(shared.mutex);
  shared.seed = static_cast<std::uint64_t>(seed);
  shared.next_stream = 0;
  shared.epoch.fetch_add(1, std::memory_order_release);
}

std::mt19937_64& random_generator() {
  thread_local std::optional<std::mt19937_64> generator;
  thread_local std::uint64_t epoch = 0;
  SeedState& shared = state();
  if (generator && epoch == shared.epoch.load(std::memory_order_acquire)) return *generator;
  const std::lock_guard lock(shared.mutex);
  epoch = shared.epoch.load(std::memory_order_relaxed);
  if (epoch == 0) {
    generator.emplace(std::random_device{}());
  } else {
    std::seed_seq sequence{shared.seed & 0xffffffffU, shared.seed >> 32, shared.next_stream++};
    generator.emplace(sequence);
  }
  return *generator;
}

}  // namespace sardonyx
