#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ep/provider.h"

namespace sardonyx {

/// Something that a provider timed itself, as on its device.
struct ProviderEvent {
  /// "Session", "Node", "Kernel" or "Api".
  std::string category;
  std::string name;
  std::int64_t process_id = 0;
  std::int64_t thread_id = 0;
  /// Since the profile began.
  std::int64_t start_us = 0;
  std::int64_t duration_us = 0;
  std::vector<std::pair<std::string, std::string>> arguments;
};

/// A provider that adds events of its own to the profile of a session. What goes wrong is logged: a
/// profile does not stop a session.
class ProfiledProvider {
 public:
  virtual ~ProfiledProvider() = default;

  /// Events are wanted from now on; the profile began at `start`.
  virtual void begin_profiling(Profiler::Clock::time_point start) const = 0;
  /// What was timed since then; nothing more is.
  virtual std::vector<ProviderEvent> end_profiling() const = 0;
};

/// The provider as one with events of its own, or null.
inline const ProfiledProvider* as_profiled(const Provider& provider) {
  return dynamic_cast<const ProfiledProvider*>(&provider);
}

}  // namespace sardonyx
