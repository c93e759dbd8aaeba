#include "plugin_host/graph_support.h"

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/status.h"
#include "plugin_host/kernel_registry.h"

namespace sardonyx::capi::ep_api {

namespace {

/// A group whose nodes are of the graph that was asked about and in no group yet.
Status add_group(OrtEpGraphSupportInfo* info, const OrtNode* const* nodes, std::size_t count,
                 bool is_fused, bool drops_constants) {
  SDX_TRY(require(info, "graph_support_info"));
  SDX_TRY(require(nodes, "nodes"));
  if (count == 0) return failure(Code::InvalidArgument, "expected at least one node, found none");
  OrtEpGraphSupportInfo::Group group{{}, is_fused, drops_constants};
  for (std::size_t i = 0; i < count; ++i) {
    SDX_ASSIGN(const ViewNode* node, view_of(nodes[i]));
    const auto id = static_cast<NodeId>(node->id);
    if (info->graph.find_node(id) != node) {
      return failure(Code::InvalidArgument,
                     "node {} ('{}', {}) is not of the graph that the provider was asked about", i,
                     node->name, node->op_type);
    }
    if (!info->taken.insert(id).second) {
      return failure(Code::InvalidArgument, "node '{}' ({}) was already taken", node->name,
                     node->op_type);
    }
    group.nodes.push_back(id);
  }
  info->groups.push_back(std::move(group));
  return {};
}

}  // namespace

OrtStatus* EpGraphSupportInfo_AddNodesToFuse(
    OrtEpGraphSupportInfo* graph_support_info, const OrtNode* const* nodes, size_t node_count,
    const OrtNodeFusionOptions* node_fusion_options) noexcept {
  return guarded("EpGraphSupportInfo_AddNodesToFuse", [&] {
    const bool drops = node_fusion_options != nullptr &&
                       node_fusion_options->ort_version_supported >= 23 &&
                       node_fusion_options->drop_constant_initializers;
    return add_group(graph_support_info, nodes, node_count, true, drops);
  });
}

OrtStatus* EpGraphSupportInfo_AddSingleNode(OrtEpGraphSupportInfo* graph_support_info,
                                            const OrtNode* node) noexcept {
  return guarded("EpGraphSupportInfo_AddSingleNode",
                 [&] { return add_group(graph_support_info, &node, 1, false, false); });
}

OrtStatus* EpGraphSupportInfo_LookUpKernel(OrtEpGraphSupportInfo* graph_support_info,
                                           const OrtNode* node,
                                           const OrtKernelDef** out_kernel_def) noexcept {
  return guarded("EpGraphSupportInfo_LookUpKernel", [&]() -> Status {
    SDX_TRY(require(graph_support_info, "graph_support_info"));
    SDX_TRY(require(out_kernel_def, "out_kernel_def"));
    *out_kernel_def = nullptr;
    SDX_ASSIGN(const ViewNode* view, view_of(node));
    // Subgraphs are run by the built-in provider.
    if (graph_support_info->registry == nullptr || !view->subgraphs.empty()) return {};
    // A node of a subgraph has its types there.
    const auto* entry = graph_support_info->registry->find(view->graph.graph(), view->node);
    if (entry != nullptr) *out_kernel_def = &entry->def;
    return {};
  });
}

}  // namespace sardonyx::capi::ep_api
