#include "session/bound_threads.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <charconv>
#include <memory>
#include <thread>

#include "base/log.h"
#include "base/text.h"

namespace sardonyx {

namespace {

Result<int> parse_processor(std::string_view text) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end && number > 0) return number - 1;
  return failure(Code::InvalidArgument,
                 "thread affinities: a processor is a number from 1 on, found '{}'", text);
}

Status add_processors(std::string_view text, std::vector<int>& processors) {
  // More than any machine has; an interval is not to fill the memory.
  constexpr int kProcessorsMax = 1 << 16;
  const auto dash = text.find('-');
  SDX_ASSIGN(const int first, parse_processor(text.substr(0, dash)));
  int last = first;
  if (dash != std::string_view::npos) {
    SDX_ASSIGN(last, parse_processor(text.substr(dash + 1)));
  }
  if (last < first || last >= kProcessorsMax) {
    return failure(Code::InvalidArgument,
                   "thread affinities: '{}' is no interval of processors from 1 to {}", text,
                   kProcessorsMax);
  }
  for (int i = first; i <= last; ++i) processors.push_back(i);
  return {};
}

/// Runs the thread that calls on those processors alone.
void bind_thread(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) {
    if (processor < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(processor), &set);
  }
  if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set) != 0) {
    log(Severity::Error, "a thread could not be bound to processor {}: it runs anywhere",
        processors.front() + 1);
  }
}

}  // namespace

Result<Affinities> parse_affinities(std::string_view text) {
  Affinities affinities;
  for (std::string_view rest = text;;) {
    const auto end = rest.find(';');
    std::string_view worker = rest.substr(0, end);
    affinities.emplace_back();
    for (;;) {
      const auto comma = worker.find(',');
      SDX_TRY(add_processors(worker.substr(0, comma), affinities.back()));
      if (comma == std::string_view::npos) break;
      worker.remove_prefix(comma + 1);
    }
    if (end == std::string_view::npos) return affinities;
    rest.remove_prefix(end + 1);
  }
}

ThreadFunctions bound_threads(Affinities affinities) {
  struct Plan {
    Affinities affinities;
    std::atomic<std::size_t> started{0};
  };
  auto plan = std::make_shared<Plan>();
  plan->affinities = std::move(affinities);
  ThreadFunctions functions;
  functions.start = [plan](void (*work)(void*), void* argument) -> const void* {
    const std::size_t number = plan->started.fetch_add(1);
    auto thread = std::make_unique<std::thread>([plan, number, work, argument] {
      if (number < plan->affinities.size()) bind_thread(plan->affinities[number]);
      work(argument);
    });
    return thread.release();
  };
  functions.join = [](const void* handle) {
    const std::unique_ptr<std::thread> thread(
        const_cast<std::thread*>(static_cast<const std::thread*>(handle)));
    thread->join();
  };
  return functions;
}

}  // namespace sardonyx
