#pragma once

#include <atomic>
#include <chrono>
#include <random>
#include <string_view>

#include "base/thread_pool.h"

namespace sardonyx {

/// Receives the time of every instruction of a run. Called from the thread that runs it.
class Profiler {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Profiler() = default;
  virtual void record(std::string_view node_name, std::string_view op_type, Clock::time_point start,
                      Clock::time_point end) = 0;
};

/// What everything that executes a part of one run shares.
struct RunState {
  ThreadPool& pool;
  /// Set from another thread to stop the run; may be null.
  const std::atomic<bool>* cancel = nullptr;
  /// Null when nobody asked for timings.
  Profiler* profiler = nullptr;
  std::mt19937_64* random = nullptr;

  bool is_cancelled() const { return cancel != nullptr && cancel->load(std::memory_order_relaxed); }
};

}  // namespace sardonyx
