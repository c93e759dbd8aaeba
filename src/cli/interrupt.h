#pragma once

#include "sardonyx/c_api.h"

namespace sardonyx::cli {

/// From now on the first Ctrl-C only asks to stop; the second one ends the program at once.
void catch_interrupts();

/// Whether somebody asked to stop.
bool interrupted();

/// While it lives, Ctrl-C terminates runs, or loading and compiling, that use these options.
class InterruptScope {
 public:
  explicit InterruptScope(OrtRunOptions* options);
  explicit InterruptScope(OrtSessionOptions* options);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};

}  // namespace sardonyx::cli
