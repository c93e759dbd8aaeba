#include "base/thread_pool.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <new>
#include <thread>
#include <vector>

using namespace sardonyx;

namespace {

/// Whether every index of [0, count) is visited once, in chunks that begin at multiples of grain.
bool covers_once(ThreadPool& pool, std::int64_t count, std::int64_t grain) {
  std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
  std::atomic<bool> is_regular{true};
  pool.parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
    if (begin % grain != 0 || end != std::min(begin + grain, count)) is_regular = false;
    for (std::int64_t i = begin; i < end; ++i) visits[static_cast<std::size_t>(i)].fetch_add(1);
  });
  for (const auto& visit : visits) {
    if (visit != 1) return false;
  }
  return is_regular;
}

/// Runs `body` in a forked child: its exit code, or -1 when it does not end within 10 seconds.
template <typename Body>
int run_in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  for (int turn = 0; turn < 1000; ++turn) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) {
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return -1;
}

}  // namespace

TEST_CASE("a loop covers its range once, whatever the threads, count and grain") {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(ThreadPoolOptions{threads});
    CHECK(pool.thread_count() == threads);
    for (const std::int64_t count : {0, 1, 2, 7, 64, 1000}) {
      for (const std::int64_t grain : {1, 3, 64, 5000}) CHECK(covers_once(pool, count, grain));
    }
  }
}

TEST_CASE("thousands of short loops after each other are all covered") {
  ThreadPool pool(ThreadPoolOptions{4});
  const ThreadPool::RunScope scope(pool);
  for (int turn = 0; turn < 3000; ++turn) {
    std::atomic<std::int64_t> sum{0};
    pool.parallel_for(17, 2, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) sum += i;
    });
    REQUIRE(sum == 136);
  }
}

TEST_CASE("a negative or zero grain and count do no harm") {
  ThreadPool pool(ThreadPoolOptions{3});
  int calls = 0;
  pool.parallel_for(-5, 1, [&](std::int64_t, std::int64_t) { ++calls; });
  CHECK(calls == 0);
  std::atomic<int> covered{0};
  pool.parallel_for(10, 0, [&](std::int64_t begin, std::int64_t end) {
    covered += static_cast<int>(end - begin);
  });
  CHECK(covered == 10);
}

TEST_CASE("a loop inside a loop runs whole, on its own thread") {
  ThreadPool pool(ThreadPoolOptions{3});
  std::atomic<int> inner{0};
  std::atomic<bool> stays{true};
  pool.parallel_for(20, 1, [&](std::int64_t, std::int64_t) {
    const auto own = std::this_thread::get_id();
    const int index = ThreadPool::thread_index();
    pool.parallel_for(50, 7, [&](std::int64_t begin, std::int64_t end) {
      if (std::this_thread::get_id() != own || ThreadPool::thread_index() != index) stays = false;
      inner += static_cast<int>(end - begin);
    });
  });
  CHECK(inner == 1000);
  CHECK(stays);
}

TEST_CASE("what a body throws on any thread reaches the caller, and the pool goes on") {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(ThreadPoolOptions{threads});
    for (const std::int64_t bad : {0, 1, 500, 999}) {
      std::atomic<int> inside{0};
      const auto body = [&](std::int64_t begin, std::int64_t) {
        inside.fetch_add(1);
        std::this_thread::sleep_for(std::chrono::microseconds(10));
        inside.fetch_sub(1);
        if (begin >= bad) throw std::bad_alloc();
      };
      CHECK_THROWS_AS(pool.parallel_for(1000, 1, body), std::bad_alloc);
      CHECK(inside == 0);
      CHECK(covers_once(pool, 1000, 1));
    }
  }
}

TEST_CASE("what a loop inside a loop throws reaches the caller of the outer one") {
  ThreadPool pool(ThreadPoolOptions{3});
  const auto inner = [](std::int64_t, std::int64_t) { throw std::bad_alloc(); };
  const auto outer = [&](std::int64_t, std::int64_t) { pool.parallel_for(10, 1, inner); };
  CHECK_THROWS_AS(pool.parallel_for(100, 1, outer), std::bad_alloc);
  CHECK(covers_once(pool, 100, 1));
}

TEST_CASE("threads of one loop have different indices below the number of threads") {
  ThreadPool pool(ThreadPoolOptions{4});
  std::vector<std::atomic<int>> busy(4);
  std::atomic<bool> is_alone{true};
  for (int turn = 0; turn < 50; ++turn) {
    pool.parallel_for(64, 1, [&](std::int64_t, std::int64_t) {
      const int index = ThreadPool::thread_index();
      if (index < 0 || index >= 4) {
        is_alone = false;
        return;
      }
      auto& mine = busy[static_cast<std::size_t>(index)];
      if (mine.fetch_add(1) != 0) is_alone = false;
      mine.fetch_sub(1);
    });
  }
  CHECK(is_alone);
  CHECK(ThreadPool::thread_index() == 0);
}

TEST_CASE("several callers at once all get their loops done") {
  ThreadPool pool(ThreadPoolOptions{3});
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int turn = 0; turn < 200; ++turn) {
        if (!covers_once(pool, 100, 3)) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

TEST_CASE("pools that were never used, or used once, end at once") {
  for (int turn = 0; turn < 20; ++turn) {
    ThreadPool idle(ThreadPoolOptions{4});
    ThreadPool used(ThreadPoolOptions{4});
    CHECK(covers_once(used, 10, 1));
  }
}

TEST_CASE("a pool works in a forked child and ends there, with the parent's workers parked") {
  auto pool = std::make_unique<ThreadPool>(ThreadPoolOptions{3});
  REQUIRE(covers_once(*pool, 100, 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(run_in_child([&] {
          for (int turn = 0; turn < 20; ++turn) {
            if (!covers_once(*pool, 100, 1)) return 1;
          }
          pool.reset();
          return 0;
        }) == 0);
  CHECK(covers_once(*pool, 100, 1));
}

TEST_CASE("a pool ends in a forked child that never used it") {
  auto pool = std::make_unique<ThreadPool>(ThreadPoolOptions{3});
  REQUIRE(covers_once(*pool, 100, 1));
  CHECK(run_in_child([&] {
          pool.reset();
          return 0;
        }) == 0);
  CHECK(covers_once(*pool, 100, 1));
}

TEST_CASE("a child forked while another thread runs a loop can run loops") {
  ThreadPool pool(ThreadPoolOptions{3});
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) covers_once(pool, 1000, 1);
  });
  for (int turn = 0; turn < 5; ++turn) {
    CHECK(run_in_child([&] { return covers_once(pool, 100, 1) ? 0 : 1; }) == 0);
  }
  stop = true;
  busy.join();
}
