#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
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

/// Receives what every instruction of a run took, in bytes. Called from the thread that runs it.
class MemoryRecorder {
 public:
  virtual ~MemoryRecorder() = default;
  /// `description` is as the node describes itself. Inputs include constants.
  virtual void record(std::string_view node_name, std::string_view description,
                      std::size_t input_bytes, std::size_t output_bytes,
                      std::size_t scratch_bytes) = 0;
};

/// What everything that executes a part of one run shares.
struct RunState {
  ThreadPool& pool;
  /// Set from another thread to stop the run; may be null.
  const std::atomic<bool>* cancel = nullptr;
  /// Null when nobody asked for timings.
  Profiler* profiler = nullptr;
  std::mt19937_64* random = nullptr;
  /// Null when nobody asked for sizes.
  MemoryRecorder* memory = nullptr;

  bool is_cancelled() const { return cancel != nullptr && cancel->load(std::memory_order_relaxed); }
};

}  // namespace sardonyx
