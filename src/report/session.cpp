#include "report/json.h"
#include "report/report.h"

namespace sardonyx {

namespace {

Json values(const std::vector<SessionValue>& described) {
  Json json = Json::array();
  for (const SessionValue& value : described) {
    json.push_back(describe_value(value.name, value.type, [&](int axis, Dim) {
      return value.symbols[static_cast<std::size_t>(axis)];
    }));
  }
  return json;
}

void add_nodes(const Graph& graph, const std::string& device, const std::string& inside,
               Json& json) {
  static constexpr const char* kReason = "the first provider in order that runs the whole graph";
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.is_removed) continue;
    Json outputs = Json::array();
    for (const ValueId output : node.outputs) {
      outputs.push_back(output == kNoValue ? Json() : Json(graph.value(output).name));
    }
    Json row = {{"name", node.name},  {"op_type", node.op_type}, {"domain", node.domain},
                {"outputs", outputs}, {"device", device},        {"reason", kReason}};
    if (!inside.empty()) row["inside"] = inside;
    json.push_back(std::move(row));
    for (const Graph* inner : subgraphs(node)) {
      add_nodes(*inner, device, node.describe(graph), json);
    }
  }
}

}  // namespace

std::string describe_session(const Session& session) {
  Json nodes = Json::array();
  if (const Graph* graph = session.optimized_graph()) {
    const auto& used = session.used_provider_names();
    add_nodes(*graph, used.empty() ? "" : used.front(), "", nodes);
  }
  const CompiledMemory memory = session.memory();
  return to_text({{"providers", session.provider_names()},
                  {"inputs", values(session.inputs())},
                  {"outputs", values(session.outputs())},
                  {"nodes", nodes},
                  {"memory",
                   {{"packed_bytes", memory.packed_bytes},
                    {"folded_bytes", memory.folded_bytes},
                    {"arena_bytes", memory.arena_bytes}}}});
}

}  // namespace sardonyx
