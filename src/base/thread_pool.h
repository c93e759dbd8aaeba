#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/function_ref.h"

namespace sardonyx {

/// How the caller wants threads to be made and waited for. Both or none are set.
struct ThreadFunctions {
  /// Runs work(argument) on a new thread; null when there is none.
  std::function<const void*(void (*work)(void* argument), void* argument)> start;
  std::function<void(const void* thread)> join;
};

/// How a pool behaves between jobs.
struct ThreadPoolOptions {
  /// Threads that work on one job, the caller included; 0 means as many as this process may use
  /// (affinity mask and cgroup quota).
  int thread_count = 0;
  /// How long a worker looks for the next loop before it parks, while a RunScope is open.
  int spin_us = 1000;
  /// How long it looks for one when no RunScope is open: enough for the next of a row of calls.
  int linger_us = 50;
  /// How long a run goes on alone before it wakes parked workers: waking a processor costs about as
  /// much as it saves until then (measured in virtual machines).
  int wake_after_us = 200;
  /// Empty: threads of the standard library, started at the first loop that needs them. Threads
  /// of the caller are started with the pool.
  ThreadFunctions functions = {};
};

/// Processors that this process may use: affinity mask and cgroup quota, at least 1.
int usable_processor_count();

/// Workers that share one loop at a time with the thread that calls.
///
/// Several threads may call at once: whoever finds the workers busy runs its loop alone. A body may
/// call parallel_for again; the inner loop then runs on its own thread. Workers start at the first
/// loop that needs them and are started anew in a forked child.
class ThreadPool {
 public:
  explicit ThreadPool(ThreadPoolOptions options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int thread_count() const;
  /// False when the caller's functions gave fewer threads than the pool was to have.
  bool is_complete() const;
  /// Inside a loop: which of the pool's threads runs, from 0 (the caller) to thread_count() - 1.
  /// Outside: 0. For scratch memory that threads must not share.
  static int thread_index();

  /// Says that loops follow each other closely: workers stay awake between them. Without one they
  /// park soon, so that an idle program costs nothing.
  class RunScope {
   public:
    explicit RunScope(ThreadPool& pool);
    ~RunScope();
    RunScope(const RunScope&) = delete;
    RunScope& operator=(const RunScope&) = delete;

   private:
    ThreadPool& pool_;
  };

  /// Calls body(begin, end) until [0, count) is covered, then returns. Chunks start at multiples
  /// of `grain` and have that length (the last may be shorter), whatever the number of threads, so
  /// results that depend only on chunks do not depend on it. count <= grain runs on the caller.
  /// What a body throws is thrown again here, once no thread is inside any more.
  void parallel_for(std::int64_t count, std::int64_t grain,
                    FunctionRef<void(std::int64_t begin, std::int64_t end)> body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sardonyx
