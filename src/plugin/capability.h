#pragma once

#include <functional>
#include <vector>

#include "ep/provider.h"
#include "plugin/graph_reader.h"

namespace sardonyx::plugin {

/// The nodes of a graph that the provider can run, as groups that can each become one node: no path
/// leads from a group out and back into it, and only tensors go in and come out. Nodes that stand
/// for what this provider compiled are groups of their own.
///
/// In a subgraph of a control flow node that the provider can run as a whole there are none, since
/// that node will be offered with everything inside it.
/// Errors   those of reading the graph.
Result<std::vector<std::vector<const OrtNode*>>> find_groups(const Host& host,
                                                             const Provider& provider,
                                                             const OrtGraph& graph);

/// Splits supported nodes into groups: nodes of equal number are in one group, kNoGroup is for
/// those that are not supported. `order` is topological.
inline constexpr std::uint32_t kNoGroup = 0xffffffffU;
std::vector<std::uint32_t> split_into_groups(const Graph& graph, std::span<const NodeId> order,
                                             const std::vector<bool>& is_supported);

}  // namespace sardonyx::plugin
