#pragma once

#include <chrono>
#include <string_view>

namespace sardonyx {

/// Receives the time of every instruction of a run. Called from the thread that runs it.
class Profiler {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Profiler() = default;
  virtual void record(std::string_view node_name, std::string_view op_type, Clock::time_point start,
                      Clock::time_point end) = 0;
};

}  // namespace sardonyx
