#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace sardonyx {

inline constexpr std::uint32_t kNoGroup = 0xffffffffU;

/// Who runs a node.
struct NodePlacement {
  /// Index of the provider in the session's order of preference.
  std::uint32_t provider = 0;
  /// Nodes of one group become one part; kNoGroup leaves the node free to join any.
  std::uint32_t group = kNoGroup;
};

/// The placement of every node of a graph, by NodeId; entries of removed nodes mean nothing.
using Assignment = std::vector<NodePlacement>;

/// A run of nodes for one provider.
struct PlannedPart {
  std::uint32_t provider = 0;
  /// In topological order.
  std::vector<NodeId> nodes;
};

/// Cuts a graph into parts, in an order in which they can run one after the other.
///
/// Goes on with the provider at hand as long as one of its nodes is ready, so that as few edges as
/// the order allows lead from one provider to another. A group runs as a whole when all that its
/// nodes need from outside is there.
/// `order` is the graph's topological order.
/// Errors   Runtime when a group's own result comes back to it through
///          other nodes, naming the group's first node.
Result<std::vector<PlannedPart>> order_parts(const Graph& graph, const std::vector<NodeId>& order,
                                             const Assignment& assignment);

}  // namespace sardonyx
