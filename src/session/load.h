#pragma once

#include "base/status.h"
#include "ir/graph.h"
#include "session/session.h"

namespace sardonyx {

/// The steps between a model's bytes and its compilation: functions inlined, dimensions fixed,
/// types inferred, common passes run, the optimized model written when asked for.
Status prepare_model(Model& model, const SessionOptions& options);

/// Compiles the whole graph with the first provider that can run every node.
/// Errors   Unsupported, naming the first node that nobody can run.
Result<std::unique_ptr<Compiled>> compile_model(const Model& model, const Environment& environment,
                                                const SessionOptions& options, int thread_count);

}  // namespace sardonyx
