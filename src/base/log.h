#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <functional>
#include <string_view>

namespace sardonyx {

/// As ONNX Runtime's OrtLoggingLevel.
enum class Severity : std::uint8_t { Verbose, Info, Warning, Error, Fatal };

/// Receives every message at or above the level. Called from any thread; must not throw.
using LogSink = std::function<void(Severity, std::string_view message)>;

/// Replaces the process-wide sink; an empty one restores the default, which writes to stderr.
void set_log_sink(LogSink sink);

/// Messages below `level` are dropped. The default is Warning.
void set_log_level(Severity level);
Severity log_level();

/// Replaces the level for messages of this thread while it lives.
class ScopedLogLevel {
 public:
  explicit ScopedLogLevel(Severity level);
  ~ScopedLogLevel();
  ScopedLogLevel(const ScopedLogLevel&) = delete;
  ScopedLogLevel& operator=(const ScopedLogLevel&) = delete;

 private:
  int former_;
};

/// Hands a finished message to the sink, whatever the level.
void write_log(Severity severity, std::string_view message);

/// Formats and hands on a message if its severity is at least the level.
template <typename... Args>
void log(Severity severity, fmt::format_string<Args...> format, Args&&... args) {
  if (severity < log_level()) return;
  write_log(severity, fmt::vformat(format, fmt::make_format_args(args...)));
}

}  // namespace sardonyx
