#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "ep/provider.h"
#include "ir/graph.h"
#include "placement/parts.h"
#include "session/parts.h"
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

/// A model of which every node has its provider.
struct PlacedModel {
  /// The parts will be compiled for and on the threads of the pool.
  PlacedModel(Model given, const Environment& environment, const SessionOptions& options,
              ThreadPool& pool);
  PlacedModel(const PlacedModel&) = delete;
  PlacedModel& operator=(const PlacedModel&) = delete;

  Model model;
  const Environment& environment;
  const SessionOptions& options;
  /// What providers are told; speaks of `model`.
  CompileOptions compile_options;
  /// Providers of this session alone.
  Providers own_providers;
  /// All of the session in order of preference, its own ones first.
  Providers providers;
  std::vector<PlannedPart> parts;
  std::vector<AssignedPart> assigned_parts;
  /// One provider runs the whole model: it gets the graph as it is.
  bool is_whole = false;
  /// Mapped files that loaded parts read when they run.
  std::vector<std::shared_ptr<const void>> files;
};

/// Gives every node to the first provider of the session that takes it, and cuts the model into
/// parts.
/// Errors   Unsupported, naming the first node that nobody runs; NeedsCompiling when the options
///          forbid to compile and a provider has to; those of the providers.
Status place_model(PlacedModel& placed);

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
