#include "plugin/capability.h"

#include <algorithm>

#include "base/log.h"
#include "ops/infer_context.h"
#include "ops/schema.h"
#include "plugin/context.h"

namespace sardonyx::plugin {

namespace {

bool has_known_types(const Graph& graph, const Node& node) {
  const auto is_known = [&](ValueId id) {
    return id == kNoValue || graph.value(id).type.kind != Type::Kind::Unknown;
  };
  return std::all_of(node.inputs.begin(), node.inputs.end(), is_known) &&
         std::all_of(node.outputs.begin(), node.outputs.end(), is_known);
}

/// Whether the provider can run the node and everything inside it.
bool can_run(const Provider& provider, const Graph& graph, NodeId id) {
  if (!provider.can_run(graph, id, nullptr)) return false;
  const Node& node = graph.node(id);
  const auto schema = find_schema(node.domain, node.op_type, node.opset);
  if (!schema.ok() || !has_known_types(graph, node)) return false;
  std::vector<const Type*> types;
  for (const ValueId input : node.inputs) {
    types.push_back(input == kNoValue ? nullptr : &graph.value(input).type);
  }
  std::vector<Type> outputs(node.outputs.size());
  if (!check_signature(node, **schema, &graph, types, outputs).ok()) return false;
  for (const Graph* subgraph : subgraphs(node)) {
    for (NodeId inner = 0; inner < subgraph->node_count(); ++inner) {
      if (!can_run(provider, *subgraph, inner)) return false;
    }
  }
  return true;
}

/// Nodes that touch a value that is no tensor stay with their neighbours: only tensors can cross
/// the border of a group.
void drop_other_kinds(const Graph& graph, std::vector<bool>& is_supported) {
  const auto is_tensor = [&](ValueId id) {
    return id == kNoValue || graph.value(id).type.is_tensor();
  };
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    const bool is_plain =
        std::all_of(node.inputs.begin(), node.inputs.end(), is_tensor) &&
        std::all_of(node.outputs.begin(), node.outputs.end(), is_tensor) &&
        std::all_of(node.implicit_inputs.begin(), node.implicit_inputs.end(), is_tensor);
    if (!is_plain) is_supported[id] = false;
  }
}

bool has_tensor_borders(const Graph& graph) {
  const auto is_tensor = [&](ValueId id) { return graph.value(id).type.is_tensor(); };
  return std::all_of(graph.inputs().begin(), graph.inputs().end(), is_tensor) &&
         std::all_of(graph.outputs().begin(), graph.outputs().end(), is_tensor);
}

std::vector<bool> supported_nodes(const Provider& provider, const ReadGraph& read) {
  std::vector<bool> is_supported(read.graph.node_count());
  for (NodeId id = 0; id < is_supported.size(); ++id) {
    is_supported[id] = read.unread[id].empty() && can_run(provider, read.graph, id);
  }
  const bool is_whole =
      std::find(is_supported.begin(), is_supported.end(), false) == is_supported.end();
  if (!is_whole || !has_tensor_borders(read.graph)) drop_other_kinds(read.graph, is_supported);
  return is_supported;
}

bool is_all_supported(const Provider& provider, const ReadGraph& read) {
  for (NodeId id = 0; id < read.graph.node_count(); ++id) {
    if (!read.unread[id].empty() || !can_run(provider, read.graph, id)) return false;
  }
  return true;
}

Result<bool> is_known_operator(const Host& host, const OrtNode& node) {
  const char* domain = nullptr;
  const char* op_type = nullptr;
  int since = 0;
  SDX_TRY(host.take(host.api->Node_GetDomain(&node, &domain)));
  SDX_TRY(host.take(host.api->Node_GetOperatorType(&node, &op_type)));
  SDX_TRY(host.take(host.api->Node_GetSinceVersion(&node, &since)));
  return find_schema(domain, op_type, since).ok();
}

/// Whether the control flow node around a graph will be ours with everything inside it, as far as
/// that can be told from here: a host need not show the graph around.
Result<bool> is_inside_ours(const Host& host, const Provider& provider, const OrtGraph& graph) {
  const OrtNode* parent = nullptr;
  SDX_TRY(host.take(host.api->Graph_GetParentNode(&graph, &parent)));
  if (parent == nullptr) return false;
  SDX_ASSIGN(const bool is_known, is_known_operator(host, *parent));
  if (!is_known) return false;
  SDX_ASSIGN(const ReadGraph read, read_graph(host, graph, Weights::Leave));
  if (!is_all_supported(provider, read)) return false;
  std::size_t count = 0;
  SDX_TRY(host.take(host.api->Node_GetNumSubgraphs(parent, &count)));
  std::vector<const OrtGraph*> branches(count);
  SDX_TRY(host.take(host.api->Node_GetSubgraphs(parent, branches.data(), count, nullptr)));
  for (const OrtGraph* branch : branches) {
    SDX_ASSIGN(const ReadGraph other, read_graph(host, *branch, Weights::Leave));
    if (!is_all_supported(provider, other)) return false;
  }
  return true;
}

}  // namespace

std::vector<std::uint32_t> split_into_groups(const Graph& graph, std::span<const NodeId> order,
                                             const std::vector<bool>& is_supported) {
  // How many times a path that leads to the node leaves the supported nodes, at most. A path out of
  // a group and back into it would leave them between nodes of one number.
  std::vector<std::uint32_t> stage(graph.node_count(), 0);
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    const auto follow = [&](ValueId value) {
      if (value == kNoValue) return;
      const NodeId before = graph.value(value).producer;
      if (before == kNoNode) return;
      const bool is_return = is_supported[id] && !is_supported[before];
      stage[id] = std::max(stage[id], stage[before] + (is_return ? 1U : 0U));
    };
    for (const ValueId value : node.inputs) follow(value);
    for (const ValueId value : node.implicit_inputs) follow(value);
  }
  for (NodeId id = 0; id < stage.size(); ++id) {
    if (!is_supported[id]) stage[id] = kNoGroup;
  }
  return stage;
}

Result<std::vector<std::vector<const OrtNode*>>> find_groups(const Host& host,
                                                             const Provider& provider,
                                                             const OrtGraph& graph) {
  std::vector<std::vector<const OrtNode*>> groups;
  SDX_ASSIGN(const bool is_inside, is_inside_ours(host, provider, graph));
  if (is_inside) return groups;
  SDX_ASSIGN(const ReadGraph read, read_graph(host, graph, Weights::Leave));
  SDX_ASSIGN(const std::vector<NodeId> order, read.graph.topological_order());
  const auto group_of = split_into_groups(read.graph, order, supported_nodes(provider, read));
  for (const NodeId id : order) {
    const std::uint32_t group = group_of[id];
    if (group == kNoGroup) continue;
    if (group >= groups.size()) groups.resize(group + 1);
    groups[group].push_back(read.nodes[id]);
  }
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  for (const NodeId id : order) {
    if (is_own_context(read.graph.node(id))) groups.push_back({read.nodes[id]});
  }
  return groups;
}

}  // namespace sardonyx::plugin
