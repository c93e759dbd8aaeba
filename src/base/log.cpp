#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

#include "base/log_scope.h"

namespace sardonyx {

namespace {

std::atomic<Severity> g_level{Severity::Warning};

constexpr int kNoLevel = -1;
thread_local int t_level = kNoLevel;
thread_local const LogSink* t_sink = nullptr;

struct SinkHolder {
  std::mutex mutex;
  std::shared_ptr<const LogSink> sink;
};

// Never destroyed: a thread that outlives static destructors may still log.
SinkHolder& holder() {
  static SinkHolder* instance = new SinkHolder;
  return *instance;
}

void write_to_stderr(Severity severity, std::string_view message) {
  static constexpr const char* kNames[] = {"verbose", "info", "warning", "error", "fatal"};
  const std::string line =
      fmt::format("sardonyx: {}: {}\n", kNames[static_cast<int>(severity)], message);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

void set_log_sink(LogSink sink) {
  auto shared = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
  const std::lock_guard lock(holder().mutex);
  holder().sink = std::move(shared);
}

void set_log_level(Severity level) { g_level.store(level, std::memory_order_relaxed); }

Severity log_level() {
  return t_level == kNoLevel ? g_level.load(std::memory_order_relaxed)
                             : static_cast<Severity>(t_level);
}

ScopedLogLevel::ScopedLogLevel(Severity level) : former_(t_level) {
  t_level = static_cast<int>(level);
}

ScopedLogLevel::~ScopedLogLevel() { t_level = former_; }

ScopedLogSink::ScopedLogSink(const LogSink* sink) : former_(t_sink) {
  if (sink != nullptr) t_sink = sink;
}

ScopedLogSink::~ScopedLogSink() { t_sink = former_; }

std::shared_ptr<const LogSink> hold_log_sink(LogSink sink) {
  const auto shared = std::make_shared<const LogSink>(std::move(sink));
  {
    const std::lock_guard lock(holder().mutex);
    holder().sink = shared;
  }
  return {shared.get(), [shared](const LogSink*) {
            const std::lock_guard lock(holder().mutex);
            if (holder().sink == shared) holder().sink = nullptr;
          }};
}

void write_log(Severity severity, std::string_view message) {
  if (t_sink != nullptr) return (*t_sink)(severity, message);
  std::shared_ptr<const LogSink> sink;
  {
    const std::lock_guard lock(holder().mutex);
    sink = holder().sink;
  }
  if (sink) {
    (*sink)(severity, message);
  } else {
    write_to_stderr(severity, message);
  }
}

}  // namespace sardonyx
