// Which provider runs which nodes of a session.
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"

struct OrtEpAssignedNode {
  std::string name;
  std::string domain;
  std::string op_type;
};

struct OrtEpAssignedSubgraph {
  std::string ep_name;
  std::vector<OrtEpAssignedNode> nodes;
  std::vector<const OrtEpAssignedNode*> node_list;
};

OrtSession::OrtSession() = default;
OrtSession::~OrtSession() = default;

namespace sardonyx::capi {

namespace {

/// The handles of what the session knows, made when it is asked for the first time.
void describe(OrtSession& session) {
  for (const AssignedPart& part : session.session->assigned_parts()) {
    auto made = std::make_unique<OrtEpAssignedSubgraph>();
    made->ep_name = part.provider;
    for (const auto& node : part.nodes)
      made->nodes.push_back({node.name, node.domain, node.op_type});
    for (const auto& node : made->nodes) made->node_list.push_back(&node);
    session.assigned_part_list.push_back(made.get());
    session.assigned_parts.push_back(std::move(made));
  }
}

template <typename Handle>
Status give_text(const Handle* handle, const char* what, std::string Handle::* member,
                 const char** out) {
  SDX_TRY(require(handle, what));
  SDX_TRY(require(out, "out"));
  *out = (handle->*member).c_str();
  return {};
}

}  // namespace

OrtStatus* Session_GetEpGraphAssignmentInfo(const OrtSession* session,
                                            const OrtEpAssignedSubgraph* const** ep_subgraphs,
                                            size_t* ep_subgraph_count) noexcept {
  return guarded("Session_GetEpGraphAssignmentInfo", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    SDX_TRY(require(ep_subgraphs, "ep_subgraphs"));
    SDX_TRY(require(ep_subgraph_count, "ep_subgraph_count"));
    const auto& entries = session->session->options().entries;
    const auto entry = entries.find("session.record_ep_graph_assignment_info");
    if (entry == entries.end() || entry->second != "1") {
      return failure(kPlainFailure,
                     "Session configuration entry 'session.record_ep_graph_assignment_info' must "
                     "be set to \"1\" to retrieve EP graph assignment information.");
    }
    const std::lock_guard lock(session->process->mutex);
    if (session->assigned_parts.empty()) describe(const_cast<OrtSession&>(*session));
    *ep_subgraphs = session->assigned_part_list.data();
    *ep_subgraph_count = session->assigned_part_list.size();
    return {};
  });
}

OrtStatus* EpAssignedSubgraph_GetEpName(const OrtEpAssignedSubgraph* ep_subgraph,
                                        const char** out) noexcept {
  return guarded("EpAssignedSubgraph_GetEpName", [&] {
    return give_text(ep_subgraph, "ep_subgraph", &OrtEpAssignedSubgraph::ep_name, out);
  });
}

OrtStatus* EpAssignedSubgraph_GetNodes(const OrtEpAssignedSubgraph* ep_subgraph,
                                       const OrtEpAssignedNode* const** ep_nodes,
                                       size_t* ep_node_count) noexcept {
  return guarded("EpAssignedSubgraph_GetNodes", [&]() -> Status {
    SDX_TRY(require(ep_subgraph, "ep_subgraph"));
    SDX_TRY(require(ep_nodes, "ep_nodes"));
    SDX_TRY(require(ep_node_count, "ep_node_count"));
    *ep_nodes = ep_subgraph->node_list.data();
    *ep_node_count = ep_subgraph->node_list.size();
    return {};
  });
}

OrtStatus* EpAssignedNode_GetName(const OrtEpAssignedNode* ep_node, const char** out) noexcept {
  return guarded("EpAssignedNode_GetName",
                 [&] { return give_text(ep_node, "ep_node", &OrtEpAssignedNode::name, out); });
}

OrtStatus* EpAssignedNode_GetDomain(const OrtEpAssignedNode* ep_node, const char** out) noexcept {
  return guarded("EpAssignedNode_GetDomain",
                 [&] { return give_text(ep_node, "ep_node", &OrtEpAssignedNode::domain, out); });
}

OrtStatus* EpAssignedNode_GetOperatorType(const OrtEpAssignedNode* ep_node,
                                          const char** out) noexcept {
  return guarded("EpAssignedNode_GetOperatorType",
                 [&] { return give_text(ep_node, "ep_node", &OrtEpAssignedNode::op_type, out); });
}

}  // namespace sardonyx::capi
