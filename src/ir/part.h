#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace sardonyx {

/// Nodes of a graph as a graph of their own, and where its inputs and outputs come from.
struct Part {
  Graph graph;
  /// Values of the whole graph, in the order of graph.inputs() and graph.outputs().
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

/// Copies nodes of `whole` into a graph of their own. Constants that they use come along (they
/// refer to the same memory); what other nodes make becomes an input; what other nodes or the
/// whole graph's outputs use becomes an output. Names stay.
///
/// `nodes` are live and stand in topological order.
Part extract_part(const Graph& whole, std::span<const NodeId> nodes);

}  // namespace sardonyx
