#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace sardonyx {

namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Grows by one in every forked child, where the workers of the parent do not exist.
std::atomic<int> g_fork_count{0};

int fork_count() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { g_fork_count.fetch_add(1); });
  static_cast<void>(registered);
  return g_fork_count.load(std::memory_order_relaxed);
}

/// Processors that a cgroup quota allows, or `fallback`.
int cgroup_processor_count(int fallback) {
  std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "r");
  if (file == nullptr) return fallback;
  long quota = 0;
  long period = 0;
  const int fields = std::fscanf(file, "%ld %ld", &quota, &period);
  std::fclose(file);
  if (fields != 2 || quota <= 0 || period <= 0) return fallback;
  return static_cast<int>(std::max(1L, std::min<long>(fallback, (quota + period - 1) / period)));
}

using Clock = std::chrono::steady_clock;
using Body = FunctionRef<void(std::int64_t, std::int64_t)>;

/// One loop; workers join it while it is open.
struct Loop {
  Body* body = nullptr;
  std::int64_t count = 0;
  std::int64_t grain = 1;
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> has_error{false};
  /// The first that a body threw; for the caller, once no worker is inside.
  std::exception_ptr error;

  /// Does one chunk; false when there is none left, or when a chunk has failed.
  bool step() {
    const std::int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
    if (begin >= count || has_error.load(std::memory_order_relaxed)) return false;
    try {
      (*body)(begin, std::min(begin + grain, count));
    } catch (...) {
      // Out of a worker it would end the process, out of the caller it would leave workers inside.
      if (!has_error.exchange(true)) error = std::current_exception();
    }
    return true;
  }
};

thread_local bool t_is_inside_loop = false;
thread_local int t_thread_index = 0;

}  // namespace

int usable_processor_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = static_cast<int>(std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof(set), &set) == 0) count = CPU_COUNT(&set);
  return std::max(1, cgroup_processor_count(std::max(1, count)));
}

struct ThreadPool::Impl {
  explicit Impl(ThreadPoolOptions given) : options(std::move(given)) {
    if (options.thread_count <= 0) options.thread_count = usable_processor_count();
  }

  // The open bit and the number of workers inside change together, so that no worker joins a loop
  // whose caller has gone.
  static constexpr std::uint64_t kOpen = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kInside = 0xffff;

  /// A thread of the standard library or of the caller.
  struct Worker {
    Impl* pool = nullptr;
    int index = 0;
    std::thread thread;
    const void* handle = nullptr;

    static void work(void* worker) {
      auto* self = static_cast<Worker*>(worker);
      self->pool->serve(self->index);
    }
  };

  ThreadPoolOptions options;
  Loop loop;
  std::atomic<std::uint64_t> state{0};
  std::atomic<std::uint64_t> generation{0};
  std::atomic<int> open_runs{0};
  /// When the run that is open may wake workers, in ticks of the clock.
  std::atomic<Clock::rep> wake_time{0};
  std::atomic<int> parked{0};
  std::atomic<bool> stop{false};
  std::mutex owner;
  /// Where idle workers sleep.
  struct Parking {
    std::mutex mutex;
    std::condition_variable wake;
  };
  std::unique_ptr<Parking> parking = std::make_unique<Parking>();
  std::vector<std::unique_ptr<Worker>> workers;
  bool is_short = false;
  int forks = 0;

  bool join() {
    std::uint64_t seen = state.load(std::memory_order_acquire);
    while ((seen & kOpen) != 0) {
      if (state.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }

  /// Waits for a generation after `seen`; false when the pool stops.
  bool wait_for_loop(std::uint64_t seen) {
    const auto start = Clock::now();
    const auto limit = start + std::chrono::microseconds(options.spin_us);
    const auto idle_limit = start + std::chrono::microseconds(options.linger_us);
    for (int turn = 1;; ++turn) {
      if (stop.load(std::memory_order_relaxed)) return false;
      if (generation.load(std::memory_order_acquire) != seen) return true;
      if (turn % 64 == 0) {
        const bool is_idle = open_runs.load(std::memory_order_relaxed) == 0;
        if (Clock::now() > (is_idle ? idle_limit : limit)) break;
      }
      relax();
    }
    std::unique_lock lock(parking->mutex);
    parked.fetch_add(1);
    parking->wake.wait(lock, [&] { return stop.load() || generation.load() != seen; });
    parked.fetch_sub(1);
    return !stop.load();
  }

  void serve(int index) {
    t_is_inside_loop = true;
    t_thread_index = index;
    std::uint64_t seen = 0;
    while (wait_for_loop(seen)) {
      seen = generation.load(std::memory_order_acquire);
      if (!join()) continue;
      while (loop.step()) {
      }
      state.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  void start_workers() {
    const int seen_forks = fork_count();
    if (forks != seen_forks) {
      // These threads live in the parent only: their handles must be neither joined nor destroyed.
      for (auto& worker : workers) static_cast<void>(worker.release());
      workers.clear();
      // They may have held the mutex, and destroying a condition waits for those who wait on it.
      static_cast<void>(parking.release());
      parking = std::make_unique<Parking>();
      state.store(0);
      parked.store(0);
      forks = seen_forks;
    }
    while (!is_short && static_cast<int>(workers.size()) < options.thread_count - 1) {
      is_short = !start_worker(static_cast<int>(workers.size()) + 1);
    }
  }

  bool start_worker(int index) {
    auto worker = std::make_unique<Worker>();
    worker->pool = this;
    worker->index = index;
    if (options.functions.start) {
      worker->handle = options.functions.start(&Worker::work, worker.get());
      if (worker->handle == nullptr) return false;
    } else {
      worker->thread = std::thread(&Worker::work, worker.get());
    }
    workers.push_back(std::move(worker));
    return true;
  }

  /// What a body threw, or null.
  std::exception_ptr run(std::int64_t count, std::int64_t grain, Body& body) {
    loop.body = &body;
    loop.count = count;
    loop.grain = grain;
    loop.next.store(0, std::memory_order_relaxed);
    loop.has_error.store(false, std::memory_order_relaxed);
    state.store(kOpen, std::memory_order_release);
    generation.fetch_add(1);
    bool may_need_waking = parked.load() > 0;
    do {
      if (!may_need_waking || Clock::now().time_since_epoch().count() < wake_time) continue;
      may_need_waking = false;
      const std::lock_guard lock(parking->mutex);
      parking->wake.notify_all();
    } while (loop.step());
    state.fetch_and(~kOpen, std::memory_order_acq_rel);
    for (int turn = 1; (state.load(std::memory_order_acquire) & kInside) != 0; ++turn) {
      turn % 4096 == 0 ? static_cast<void>(sched_yield()) : relax();
    }
    return std::exchange(loop.error, nullptr);
  }
};

ThreadPool::ThreadPool(ThreadPoolOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {
  impl_->forks = fork_count();
  if (impl_->options.functions.start) impl_->start_workers();
}

ThreadPool::~ThreadPool() {
  if (impl_->forks != fork_count()) {
    // In a forked child the mutexes may be held by threads that do not exist here.
    static_cast<void>(impl_.release());
    return;
  }
  {
    const std::lock_guard lock(impl_->parking->mutex);
    impl_->stop.store(true);
  }
  impl_->parking->wake.notify_all();
  for (const auto& worker : impl_->workers) {
    if (worker->handle == nullptr) {
      worker->thread.join();
    } else {
      impl_->options.functions.join(worker->handle);
    }
  }
}

bool ThreadPool::is_complete() const { return !impl_->is_short; }

int ThreadPool::thread_count() const { return impl_->options.thread_count; }

int ThreadPool::thread_index() { return t_thread_index; }

ThreadPool::RunScope::RunScope(ThreadPool& pool) : pool_(pool) {
  Impl& impl = *pool_.impl_;
  if (impl.options.thread_count <= 1) return;
  if (impl.open_runs.fetch_add(1, std::memory_order_relaxed) != 0) return;
  const auto wake_time = Clock::now() + std::chrono::microseconds(impl.options.wake_after_us);
  impl.wake_time.store(wake_time.time_since_epoch().count(), std::memory_order_relaxed);
}

ThreadPool::RunScope::~RunScope() {
  if (pool_.impl_->options.thread_count <= 1) return;
  pool_.impl_->open_runs.fetch_sub(1, std::memory_order_relaxed);
}

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain, Body body) {
  if (count <= 0) return;
  grain = std::max<std::int64_t>(1, grain);
  const bool is_alone = impl_->options.thread_count <= 1 || count <= grain || t_is_inside_loop;
  std::unique_lock lock(impl_->owner, std::defer_lock);
  if (is_alone || !lock.try_lock()) {
    for (std::int64_t begin = 0; begin < count; begin += grain) {
      body(begin, std::min(begin + grain, count));
    }
    return;
  }
  impl_->start_workers();
  t_is_inside_loop = true;
  const std::exception_ptr error = impl_->run(count, grain, body);
  t_is_inside_loop = false;
  if (error) std::rethrow_exception(error);
}

}  // namespace sardonyx
