#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"
#include "placement/parts.h"

namespace sardonyx {

/// Cuts `chosen` (in topological order) so that within one stage no path leads from one chosen node
/// to another through nodes that are not chosen: whatever nodes of a stage become one part, no
/// result of the part comes back to it. Stages are in the order in which they can run.
///
/// Nodes that `assignment` has in a group count as one. Entries that are missing count as nobody's.
/// Cost     linear in nodes and edges.
std::vector<std::vector<NodeId>> cut_into_stages(const Graph& graph,
                                                 const std::vector<NodeId>& order,
                                                 const std::vector<NodeId>& chosen,
                                                 const Assignment& assignment);

}  // namespace sardonyx
