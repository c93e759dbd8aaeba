#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "ep/provider.h"
#include "ir/graph.h"
#include "session/parts.h"
#include "session/place.h"
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
  Placement placement;
  /// Mapped files that loaded parts read when they run.
  std::vector<std::shared_ptr<const void>> files;
};

struct ContextOptions;

/// Every part as a graph of its own, compiled if `is_wanted` says so of it.
/// Errors   those of the providers, naming them.
Result<std::vector<CompiledPart>> compile_parts(PlacedModel& placed,
                                                FunctionRef<bool(const PlannedPart&)> is_wanted);

/// The model that runs the parts one after the other.
/// Errors   those of the provider that runs the whole.
Result<CompiledModel> assemble(PlacedModel& placed, std::vector<CompiledPart> parts);

/// All of it: places, compiles and assembles, and, with `context`, writes the compiled model, which
/// must not overwrite one of `sources`.
Result<CompiledModel> compile_model(Model model, const Environment& environment,
                                    const SessionOptions& options, ThreadPool& pool,
                                    const ContextOptions* context = nullptr,
                                    std::span<const std::string> sources = {});

}  // namespace sardonyx
