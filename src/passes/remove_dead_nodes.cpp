#include <algorithm>

#include "passes/passes.h"

namespace sardonyx {

namespace {

bool is_needed(const Graph& graph, const Node& node) {
  return std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
    return output != kNoValue &&
           (graph.value(output).use_count != 0 || graph.value(output).is_output);
  });
}

}  // namespace

Status remove_dead_nodes(Graph& graph, const PassOptions&) {
  // Outer graphs come after inner ones, so that what only a dead inner node used can go too.
  return for_each_graph(graph, [](Graph& part) -> Status {
    SDX_ASSIGN(const std::vector<NodeId> order, part.topological_order());
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      if (!is_needed(part, part.node(*id))) part.remove_node(*id);
    }
    return {};
  });
}

}  // namespace sardonyx
