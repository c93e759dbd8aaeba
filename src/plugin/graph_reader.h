#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "plugin/host.h"

namespace sardonyx::plugin {

/// A graph of the host as ours.
struct ReadGraph {
  Graph graph;
  SymbolTable symbols;
  /// The host's nodes by NodeId.
  std::vector<const OrtNode*> nodes;
  /// By NodeId: why a node cannot be read; "" for one that was.
  std::vector<std::string> unread;
};

/// What to do with the weights.
enum class Weights {
  /// They stay where they are: constants become inputs without a value.
  Leave,
  /// Those that stand in a file are mapped, others are copied, since the host drops its own.
  Take,
};

/// Reads the graph, with the subgraphs inside it. What an initializer that a caller may replace
/// holds is not looked at: it is an input.
///
/// A node that has something the interface cannot show (a sparse tensor or a type as attribute) is
/// an error with Weights::Take, and noted with Weights::Leave.
/// Cost     linear in nodes, attributes and bytes of weights that are not in a file.
Result<ReadGraph> read_graph(const Host& host, const OrtGraph& graph, Weights weights);

}  // namespace sardonyx::plugin
