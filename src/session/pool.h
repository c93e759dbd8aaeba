#pragma once

#include <memory>

#include "base/status.h"
#include "base/thread_pool.h"
#include "session/session.h"

namespace sardonyx {

/// The threads that a session with these options runs on: its own, or the environment's.
/// Errors   InvalidArgument for affinities that do not fit the number of threads, and when the
///          caller's function makes fewer threads than it should.
Result<std::shared_ptr<ThreadPool>> make_pool(Environment& environment,
                                              const SessionOptions& options);

}  // namespace sardonyx
