#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "plugin/host.h"

namespace sardonyx::plugin {

inline constexpr const char* kEpName = "SardonyxExecutionProvider";

/// What a session says about this provider.
struct EpOptions {
  /// Threads of one run, the caller included; 0: as many as this process may use.
  int thread_count = 0;
  /// All configuration entries of the session by key.
  std::vector<std::pair<std::string, std::string>> entries;
};

/// Reads the configuration entries of a session. Keys of this provider that are not known are
/// warned of; see docs/plugins.md for those that are.
/// Errors   InvalidArgument for a value that does not fit, naming key and range.
Result<EpOptions> read_options(const Host& host, const OrtSessionOptions& session);

}  // namespace sardonyx::plugin
