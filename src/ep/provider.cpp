#include "ep/provider.h"

namespace sardonyx {

Result<std::vector<NodeGroup>> Provider::offer(const Model& model,
                                               std::span<const NodeId> free) const {
  NodeGroup group;
  for (const NodeId id : free) {
    if (can_run(model.graph, id, nullptr)) group.nodes.push_back(id);
  }
  std::vector<NodeGroup> groups;
  if (!group.nodes.empty()) groups.push_back(std::move(group));
  return groups;
}

Result<std::vector<std::unique_ptr<Compiled>>> Provider::compile_all(
    std::vector<Graph> graphs, const CompileOptions& options) const {
  std::vector<std::unique_ptr<Compiled>> all;
  for (Graph& graph : graphs) {
    SDX_ASSIGN(auto compiled, compile(std::move(graph), options));
    all.push_back(std::move(compiled));
  }
  return all;
}

Result<std::optional<PartEstimate>> Provider::estimate(const Graph& /*graph*/,
                                                       const CompileOptions& /*options*/) const {
  return std::optional<PartEstimate>();
}

Result<std::string> Provider::compatibility_info(const Model&) const { return std::string(); }

Result<Compatibility> Provider::check_compatibility(const std::string&) const {
  return Compatibility::NotApplicable;
}

Status Provider::begin_run(const void*) const { return {}; }
Status Provider::end_run(const void*) const { return {}; }

Status Provider::change_options(std::span<const std::pair<std::string, std::string>>) const {
  return Status(Code::Unsupported,
                "provider '" + std::string(name()) + "' has no options that change later");
}

}  // namespace sardonyx
