#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "ep/provider.h"
#include "ir/graph.h"
#include "placement/parts.h"
#include "placement/placement.h"
#include "session/session.h"

namespace sardonyx {

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
  /// Who runs what, and why.
  Placement placement;
  /// One provider runs the whole model: it gets the graph as it is.
  bool is_whole = false;
  /// Mapped files that loaded parts read when they run.
  std::vector<std::shared_ptr<const void>> files;
};

/// Gives every node to the provider that a rule of the session names for it, or else to the first
/// one that takes it, and cuts the model into parts.
/// Errors   Unsupported, naming the first node that nobody runs; InvalidArgument for rules that
///          cannot be read, and strict ones that cannot be kept; NeedsCompiling when the options
///          forbid to compile and a provider has to; those of the providers.
Status place_model(PlacedModel& placed);

}  // namespace sardonyx
