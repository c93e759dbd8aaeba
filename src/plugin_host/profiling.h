#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "ep/profiled.h"
#include "sardonyx/c_api.h"

struct OrtProfilingEvent {
  OrtProfilingEventCategory category = OrtProfilingEventCategory_SESSION;
  int32_t process_id = 0;
  int32_t thread_id = 0;
  std::string name;
  int64_t timestamp_us = 0;
  int64_t duration_us = 0;
  std::map<std::string, std::string> arguments;
};

struct OrtProfilingEventsContainer {
  std::vector<OrtProfilingEvent> events;
};

namespace sardonyx::plugin_host {

/// A plugin's OrtEpProfilerImpl. What it does wrong is logged and goes no further. Thread-safe.
class PluginProfiler {
 public:
  using Clock = Profiler::Clock;

  /// Asks the provider for its profiler and starts it; null when it has none.
  static std::unique_ptr<PluginProfiler> start(std::string library, OrtEp& ep,
                                               Clock::time_point profile_start);
  ~PluginProfiler();
  PluginProfiler(const PluginProfiler&) = delete;
  PluginProfiler& operator=(const PluginProfiler&) = delete;

  /// A node begins; the number that its end has to name.
  std::uint64_t begin_node();
  void end_node(std::uint64_t id, std::string_view node_name, std::string_view op_type,
                std::string_view provider, Clock::time_point start, Clock::time_point end);
  /// The plugin's events; it is told nothing more.
  std::vector<ProviderEvent> end();

 private:
  PluginProfiler(std::string library, OrtEpProfilerImpl& impl, Clock::time_point profile_start);
  /// Logs what a callback answered when it is an error.
  bool succeeds(std::string_view callback, FunctionRef<OrtStatus*()> body) const;

  std::string library_;
  OrtEpProfilerImpl& impl_;
  Clock::time_point profile_start_;
  std::atomic<std::uint64_t> next_id_;
  /// Shared by nodes, held alone by the end.
  std::shared_mutex mutex_;
  bool is_on_ = true;
};

/// One node's time, for the session's profile and the plugin's profiler, as far as they are.
class TimedNode {
 public:
  TimedNode(Profiler* profile, PluginProfiler* plugin) : profile_(profile), plugin_(plugin) {
    if (profile_ == nullptr) return;
    if (plugin_ != nullptr) id_ = plugin_->begin_node();
    start_ = Profiler::Clock::now();
  }

  /// To be called when the node has run.
  void end(std::string_view node_name, std::string_view op_type, std::string_view provider) {
    if (profile_ == nullptr) return;
    const auto end = Profiler::Clock::now();
    profile_->record(node_name, op_type, start_, end);
    if (plugin_ != nullptr) plugin_->end_node(id_, node_name, op_type, provider, start_, end);
  }

 private:
  Profiler* profile_;
  PluginProfiler* plugin_;
  std::uint64_t id_ = 0;
  Profiler::Clock::time_point start_;
};

}  // namespace sardonyx::plugin_host
