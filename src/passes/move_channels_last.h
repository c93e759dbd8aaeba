#pragma once

#include <span>

#include "ir/graph.h"

namespace sardonyx {

/// Rewrites nodes as those of the domain com.ms.internal.nhwc, whose first input and first output
/// have their channels last: Transposes lead into and out of them. Between two such nodes they
/// cancel, also across element-wise operators in between; weights and other inputs stay.
///
/// Nodes whose first input or output has no known rank of 3 or more, or that use further outputs,
/// are left as they are, and so are operators in between that are not `free`. Returns the nodes
/// that took the places of the others. Errors   InvalidModel when the graph has a cycle.
Result<std::vector<NodeId>> move_channels_last(Graph& graph, std::span<const NodeId> nodes,
                                               std::span<const NodeId> free, std::int64_t opset);

}  // namespace sardonyx
