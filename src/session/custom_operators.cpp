#include "session/custom_operators.h"

#include <map>

#include "base/text.h"
#include "ops/schema.h"

namespace sardonyx {

namespace {

using Key = std::pair<std::string_view, std::string_view>;
using Index = std::map<Key, const CustomOperatorEntry*>;

Status bind_graph(Graph& graph, const Index& index) {
  return for_each_graph(graph, [&](Graph& part) -> Status {
    for (NodeId id = 0; id < part.node_count(); ++id) {
      Node& node = part.node(id);
      if (node.is_removed) continue;
      const auto found = index.find({node.domain, node.op_type});
      if (found == index.end()) continue;
      // Rewrites know standard operators by name: they would take this one for the other.
      if (node.domain.empty() && find_schema(node.domain, node.op_type, node.opset).ok()) {
        return failure(Code::Unsupported,
                       "custom operator '{}' would replace a standard ONNX operator: give it a "
                       "domain of its own",
                       node.op_type);
      }
      node.custom = found->second->op;
    }
    return {};
  });
}

}  // namespace

Status bind_custom_operators(Graph& graph, std::span<const CustomOperatorEntry> entries) {
  if (entries.empty()) return {};
  Index index;
  for (const CustomOperatorEntry& entry : entries) index[{entry.domain, entry.name}] = &entry;
  return bind_graph(graph, index);
}

}  // namespace sardonyx
