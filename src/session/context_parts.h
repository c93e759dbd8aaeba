#pragma once

#include "base/status.h"
#include "context/context_node.h"
#include "ep/artifact.h"
#include "ep/provider.h"
#include "ir/graph.h"
#include "session/session.h"

namespace sardonyx {

/// The provider among them that kept the part that the node stands for, or null.
const ArtifactProvider* keeper_of(const Node& node, const Providers& providers);

/// Loads the part that the one node of a graph stands for.
/// Errors   those of the container: missing, damaged, of another build; InvalidModel for a node
///          whose attributes do not fit. They name the node and the file.
Result<LoadedContext> load_context(const Graph& graph, const ArtifactProvider& provider,
                                   const CompileOptions& compile_options,
                                   const SessionOptions& options);

}  // namespace sardonyx
