#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "ep/provider.h"
#include "ir/graph.h"
#include "session/session.h"

namespace sardonyx {

/// A model that is ready to run, and who runs it.
struct CompiledModel {
  std::unique_ptr<Compiled> compiled;
  /// Providers of this session alone, which hear of its runs.
  Providers own_providers;
  /// Names of the session's providers, in order of preference.
  std::vector<std::string> providers;
  /// Those that have a part of the model.
  std::vector<std::string> used_providers;
  std::vector<AssignedPart> assigned_parts;
  /// Mapped files that loaded parts read when they run.
  std::vector<std::shared_ptr<const void>> files;
};

/// Gives every node to the first provider of the session that takes it, and compiles the parts for
/// and on the threads of the pool.
/// Errors   Unsupported, naming the first node that nobody runs; those of the providers, naming
///          them.
Result<CompiledModel> compile_model(const Model& model, const Environment& environment,
                                    const SessionOptions& options, ThreadPool& pool);

}  // namespace sardonyx
