#include "session/pool.h"

#include "base/text.h"
#include "session/bound_threads.h"

namespace sardonyx {

namespace {

/// Errors   InvalidArgument for a text that is none, or that speaks of another number of threads.
Result<Affinities> affinities_for(const SessionOptions& options) {
  const auto entry = options.entries.find("session.intra_op_thread_affinities");
  if (entry == options.entries.end() || entry->second.empty()) return Affinities();
  SDX_ASSIGN(Affinities affinities, parse_affinities(entry->second));
  // The number of threads that the library chooses is not known to the caller.
  if (options.thread_count == 0) return Affinities();
  if (affinities.size() + 1 == static_cast<std::size_t>(options.thread_count)) return affinities;
  return failure(Code::InvalidArgument,
                 "session.intra_op_thread_affinities has {} threads, expected {}: one less than "
                 "the {} of the session, since the caller is one",
                 affinities.size(), options.thread_count - 1, options.thread_count);
}

}  // namespace

Result<std::shared_ptr<ThreadPool>> make_pool(Environment& environment,
                                              const SessionOptions& chosen) {
  if (chosen.use_shared_pool) return environment.shared_pool();
  ThreadPoolOptions options;
  options.thread_count = chosen.thread_count;
  options.functions = chosen.thread_functions;
  if (!options.functions.start) {
    SDX_ASSIGN(Affinities affinities, affinities_for(chosen));
    if (!affinities.empty()) options.functions = bound_threads(std::move(affinities));
  }
  auto pool = std::make_shared<ThreadPool>(std::move(options));
  if (pool->is_complete()) return pool;
  return failure(Code::InvalidArgument,
                 "the custom function that creates threads returned none for one of {} threads",
                 pool->thread_count());
}

}  // namespace sardonyx
