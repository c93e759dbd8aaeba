#pragma once

#include <memory>
#include <optional>

#include "base/function_ref.h"
#include "base/log_scope.h"
#include "capi/handles.h"

namespace sardonyx::capi {

/// Whom a session tells what, while its work is done.
class SessionLog {
 public:
  SessionLog(const std::shared_ptr<const LogSink>& sink, const std::optional<Severity>& level)
      : sink_(sink.get()) {
    if (level) level_.emplace(*level);
  }

 private:
  ScopedLogSink sink_;
  std::optional<ScopedLogLevel> level_;
};

/// The level that the options ask for; none: the environment's.
/// Errors   for a level that there is not.
Result<std::optional<Severity>> severity_of(const OrtSessionOptions& options);

/// What a session is made with: the options of the handle, and what depends on all of them.
Result<SessionOptions> complete_options(const OrtEnv& env, const OrtSessionOptions& options);

/// The status of a load, with a code of its own when the program cancelled it.
OrtStatus* of_cancelled_load(const OrtSessionOptions* options, OrtStatus* status);

using SessionMaker = FunctionRef<Result<std::unique_ptr<Session>>(SessionOptions)>;

/// A session handle around what `make` loads with the given options (null: the defaults).
Status create_session(const OrtEnv* env, const OrtSessionOptions* options, OrtSession** out,
                      SessionMaker make);

/// The options of a handle, or the defaults for null.
SessionOptions session_options(const OrtSessionOptions* options);

/// The same, with what its entries say about a model that is given as bytes.
SessionOptions for_model_bytes(SessionOptions options);

}  // namespace sardonyx::capi
