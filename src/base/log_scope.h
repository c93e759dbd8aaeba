#pragma once

#include <memory>

#include "base/log.h"

namespace sardonyx {

/// Replaces the sink for messages of this thread while it lives; null changes nothing.
class ScopedLogSink {
 public:
  explicit ScopedLogSink(const LogSink* sink);
  ~ScopedLogSink();
  ScopedLogSink(const ScopedLogSink&) = delete;
  ScopedLogSink& operator=(const ScopedLogSink&) = delete;

 private:
  const LogSink* former_;
};

/// Makes the sink the process-wide one for as long as it is held; the default comes back then,
/// unless it was replaced before.
std::shared_ptr<const LogSink> hold_log_sink(LogSink sink);

}  // namespace sardonyx
