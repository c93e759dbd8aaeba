#pragma once

#include <mutex>
#include <string>

#include "base/status.h"
#include "ep/profiled.h"
#include "ep/run_state.h"

namespace sardonyx {

/// Collects the times of nodes and runs and writes them in Chrome's trace event format.
class TraceProfiler final : public Profiler {
 public:
  TraceProfiler();

  void record(std::string_view node_name, std::string_view op_type, Clock::time_point start,
              Clock::time_point end) override;
  /// An event that is not a node's: "model_loading", "model_run".
  void record_session(std::string_view event, Clock::time_point start, Clock::time_point end);

  /// An event that a provider timed itself.
  void record_event(const ProviderEvent& event);

  Clock::time_point start() const { return start_; }
  /// Nanoseconds of the steady clock when it was made.
  std::uint64_t start_ns() const;
  /// Writes all events to a new file named after `prefix` and the date, and takes no more; its
  /// path, or "" when it has ended before.
  Result<std::string> end(const std::string& prefix);

 private:
  void add(std::string_view category, std::string_view name, std::string_view arguments,
           Clock::time_point start, Clock::time_point end);

  void append(const std::string& event);

  Clock::time_point start_;
  std::mutex mutex_;
  std::string events_;
  bool has_ended_ = false;
};

}  // namespace sardonyx
