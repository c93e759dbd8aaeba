#include "session/plan.h"

#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "session/load.h"
#include "session/place.h"
#include "session/pool.h"

namespace sardonyx {

namespace {

/// Takes nodes as the described device would; runs nothing.
class ImaginedProvider final : public Provider {
 public:
  explicit ImaginedProvider(ImaginedDevice device) : device_(std::move(device)) {
    operators_.insert(device_.operators.begin(), device_.operators.end());
  }

  std::string_view name() const override { return device_.provider; }
  std::vector<DeviceDescription> devices() const override { return {device_.description}; }

  bool can_run(const Graph& graph, NodeId id, std::string* why_not) const override {
    const Node& node = graph.node(id);
    const std::string op = node.domain.empty() ? node.op_type : node.domain + ":" + node.op_type;
    const bool runs = operators_.empty() ? node.domain.empty() : operators_.contains(op);
    if (!runs && why_not != nullptr) {
      *why_not = fmt::format("the described device of {} does not list {}", device_.provider, op);
    }
    return runs;
  }

  Result<std::unique_ptr<Compiled>> compile(Graph, const CompileOptions&) const override {
    return failure(Code::Unsupported, "{} is a described device: it can be planned for, not used",
                   device_.provider);
  }

 private:
  ImaginedDevice device_;
  std::unordered_set<std::string> operators_;
};

ProviderMaker maker_of(ImaginedDevice device) {
  auto provider = std::make_shared<ImaginedProvider>(std::move(device));
  return [provider](const CompileOptions&) -> Result<Providers> { return Providers{provider}; };
}

/// What a node is known by when passes may have moved it: its first output, or its name.
std::string key_of(const Graph& graph, const Node& node) {
  if (!node.name.empty()) return "n" + node.name;
  for (const ValueId output : node.outputs) {
    if (output != kNoValue) return "v" + graph.value(output).name;
  }
  return "";
}

std::unordered_set<std::string> keys_of(const Graph& graph) {
  std::unordered_set<std::string> keys;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    if (!graph.node(id).is_removed) keys.insert(key_of(graph, graph.node(id)));
  }
  return keys;
}

struct NamedNode {
  std::string key;
  RemovedNode node;
};

/// The nodes of the model as it was read; calls of its functions become others later.
std::vector<NamedNode> nodes_of(const Graph& graph) {
  std::vector<NamedNode> nodes;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (!node.is_removed) {
      nodes.push_back({key_of(graph, node), {node.name, node.domain, node.op_type}});
    }
  }
  return nodes;
}

bool is_function_call(const Model& model, const RemovedNode& node) {
  return std::any_of(model.functions.begin(), model.functions.end(), [&](const Function& each) {
    return each.domain == node.domain && each.name == node.op_type;
  });
}

}  // namespace

Result<Plan> plan_model(std::shared_ptr<Environment> environment, const std::string& path,
                        SessionOptions options, std::vector<ImaginedDevice> imagined) {
  std::vector<ProviderMaker> makers;
  for (ImaginedDevice& device : imagined) makers.push_back(maker_of(std::move(device)));
  options.own_providers.insert(options.own_providers.begin(), makers.begin(), makers.end());
  // Looking writes nothing, and starts no threads; how many there would be counts for estimates.
  options.optimized_model_path.clear();
  options.use_shared_pool = false;
  options.thread_functions = {};
  SDX_TRY(report_progress(options, LoadStage::Read));
  std::vector<DimDenotation> denotations;
  SDX_ASSIGN(Model model, read_model(path, options.read, &denotations));
  std::vector<NamedNode> before = nodes_of(model.graph);
  std::erase_if(before, [&](const NamedNode& each) { return is_function_call(model, each.node); });
  SDX_TRY(prepare_model(model, options, denotations).with("planning '" + path + "'"));
  const auto left = keys_of(model.graph);
  SDX_ASSIGN(const auto pool, make_pool(*environment, options));
  PlacedModel placed(std::move(model), *environment, options, *pool);
  SDX_TRY(place_model(placed).with("planning '" + path + "'"));
  Plan plan;
  plan.placement = std::move(placed.placement);
  plan.details = details_of(placed.model.graph, placed.parts);
  for (NamedNode& each : before) {
    if (!left.contains(each.key)) plan.removed.push_back(std::move(each.node));
  }
  return plan;
}

}  // namespace sardonyx
