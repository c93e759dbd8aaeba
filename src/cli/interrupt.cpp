#include "cli/interrupt.h"

#include <atomic>
#include <csignal>

#include "cli/api.h"

namespace sardonyx::cli {

namespace {

// Signal handlers have no other way to reach the program's state.
std::atomic<bool> stop_asked{false};
std::atomic<OrtRunOptions*> current_run{nullptr};
std::atomic<OrtSessionOptions*> current_load{nullptr};

static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<OrtRunOptions*>::is_always_lock_free);

/// Each sets one atomic flag, which is safe inside a handler.
void stop_current() {
  if (OrtRunOptions* options = current_run.load()) (void)api().RunOptionsSetTerminate(options);
  if (OrtSessionOptions* options = current_load.load()) {
    (void)api().SessionOptionsSetLoadCancellationFlag(options, true);
  }
}

extern "C" void ask_to_stop(int signal_number) {
  stop_asked.store(true);
  stop_current();
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
  if (interrupted()) stop_current();
}

InterruptScope::InterruptScope(OrtSessionOptions* options) {
  current_load.store(options);
  if (interrupted()) stop_current();
}

InterruptScope::~InterruptScope() {
  current_run.store(nullptr);
  current_load.store(nullptr);
}

}  // namespace sardonyx::cli
