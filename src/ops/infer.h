#pragma once

#include "base/status.h"
#include "ir/graph.h"

namespace sardonyx {

/// Infers types and shapes of all values of a graph and its subgraphs from its inputs and
/// constants, checking every node against its operator on the way.
///
/// What is inferred replaces what the model declared; a declaration fills in what cannot be
/// inferred. Declared graph output shapes that contradict are reported as a warning only, since
/// other runtimes accept them.
/// Errors   Unsupported or InvalidModel, naming the node, the operator and the tensor.
/// Cost     linear in the number of nodes.
Status infer_types(Graph& graph);

}  // namespace sardonyx
