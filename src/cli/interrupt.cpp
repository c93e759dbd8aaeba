#include "cli/interrupt.h"

#include <atomic>
#include <csignal>

#include "cli/api.h"

namespace sardonyx::cli {

namespace {

// Signal handlers have no other way to reach the program's state.
std::atomic<bool> stop_asked{false};
std::atomic<OrtRunOptions*> current_run{nullptr};

static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<OrtRunOptions*>::is_always_lock_free);

extern "C" void ask_to_stop(int signal_number) {
  stop_asked.store(true);
  // Sets one atomic flag, which is safe inside a handler.
  if (OrtRunOptions* options = current_run.load()) (void)api().RunOptionsSetTerminate(options);
  std::signal(signal_number, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
  (void)api();
  std::signal(SIGINT, &ask_to_stop);
}

bool interrupted() { return stop_asked.load(); }

InterruptScope::InterruptScope(OrtRunOptions* options) {
  current_run.store(options);
  // It may have come just before.
  if (interrupted()) (void)api().RunOptionsSetTerminate(options);
}

InterruptScope::~InterruptScope() { current_run.store(nullptr); }

}  // namespace sardonyx::cli
