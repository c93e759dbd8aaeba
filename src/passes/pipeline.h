#pragma once

#include <span>

#include "passes/pass.h"

namespace sardonyx {

/// The passes of a stage, in order.
std::span<const Pass> passes_of(PassStage stage);

/// Runs a stage: skips what the options leave out, infers types again after each pass that changed
/// the graph, and in debug builds verifies it.
/// Errors   those of a pass, naming it.
Status run_passes(PassStage stage, Graph& graph, const PassOptions& options);

/// Replaces calls of the model's own functions by their bodies, in subgraphs and bodies too.
/// Errors   InvalidModel for recursion, unknown attributes, or more nodes than a bound allows.
Status inline_functions(Model& model);

}  // namespace sardonyx
