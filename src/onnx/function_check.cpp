#include "base/text.h"
#include "onnx/graph_reader.h"

namespace sardonyx::onnx {

namespace {

using Index = std::unordered_map<std::string, std::size_t>;

std::string key_of(const std::string& domain, const std::string& name,
                   const std::string& overload) {
  std::string key = domain;
  key += '\0';
  key += name;
  key += '\0';
  return key += overload;
}

void add_callees(const Graph& graph, const Index& index, std::vector<std::size_t>& callees) {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    const auto callee = index.find(key_of(node.domain, node.op_type, node.overload));
    if (callee != index.end()) callees.push_back(callee->second);
    for (const Graph* subgraph : subgraphs(node)) add_callees(*subgraph, index, callees);
  }
}

Result<Index> index_of(const std::vector<Function>& functions) {
  Index index;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const Function& function = functions[i];
    const std::string key = key_of(function.domain, function.name, function.overload);
    if (!index.emplace(key, i).second) {
      return failure(Code::InvalidModel, "the model has two functions '{}' of domain '{}'",
                     function.name, function.domain);
    }
  }
  return index;
}

}  // namespace

Status check_functions(const std::vector<Function>& functions) {
  SDX_ASSIGN(const Index index, index_of(functions));
  std::vector<std::vector<std::size_t>> callees(functions.size());
  std::vector<std::size_t> callers(functions.size(), 0);
  for (std::size_t i = 0; i < functions.size(); ++i) {
    add_callees(*functions[i].body, index, callees[i]);
    for (const std::size_t callee : callees[i]) ++callers[callee];
  }
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (callers[i] == 0) ready.push_back(i);
  }
  // A function is done when all its callers are; those on a cycle never are.
  while (!ready.empty()) {
    const std::size_t caller = ready.back();
    ready.pop_back();
    for (const std::size_t callee : callees[caller]) {
      if (--callers[callee] == 0) ready.push_back(callee);
    }
  }
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (callers[i] == 0) continue;
    return failure(Code::InvalidModel,
                   "function '{}' of domain '{}' calls itself or is called by one that does",
                   functions[i].name, functions[i].domain);
  }
  return {};
}

}  // namespace sardonyx::onnx
