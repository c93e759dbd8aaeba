#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "passes/pipeline.h"

namespace sardonyx {

namespace {

/// Functions that call each other can grow a small file without end.
constexpr std::size_t kNodes_max = std::size_t{1} << 21;
constexpr int kDepth_max = 64;

std::string key_of(const std::string& domain, const std::string& name,
                   const std::string& overload) {
  return domain + "\n" + name + "\n" + overload;
}

class Inliner {
 public:
  explicit Inliner(Model& model) : model_(model) {
    for (const Function& function : model.functions) {
      functions_.emplace(key_of(function.domain, function.name, function.overload), &function);
    }
  }

  Status inline_graph(Graph& graph, int depth) {
    if (depth > kDepth_max) {
      return failure(Code::InvalidModel, "functions call each other more than {} levels deep",
                     kDepth_max);
    }
    const std::size_t count = graph.node_count();
    for (NodeId id = 0; id < count; ++id) {
      if (graph.node(id).is_removed) continue;
      bool has_subgraphs = false;
      for (Graph* subgraph : subgraphs(graph.node(id))) {
        SDX_TRY(inline_graph(*subgraph, depth + 1));
        has_subgraphs = true;
      }
      if (has_subgraphs) graph.refresh_implicit_inputs(id);
      const Node& node = graph.node(id);
      if (node.custom != nullptr) continue;
      const auto found = functions_.find(key_of(node.domain, node.op_type, node.overload));
      if (found == functions_.end()) continue;
      const std::string where = "inlining " + node.describe(graph);
      Status status = inline_call(graph, id, *found->second, depth);
      if (!status.ok()) return std::move(status).with(where);
    }
    return {};
  }

 private:
  using ValueMap = std::vector<ValueId>;

  Status inline_call(Graph& graph, NodeId id, const Function& function, int depth) {
    // The body's own calls are inlined in a copy first, so that each call copies plain nodes.
    Graph body = *function.body;
    SDX_TRY(resolve_references(body, graph.node(id), function));
    SDX_TRY(inline_graph(body, depth + 1));
    node_count_ += body.node_count();
    if (node_count_ > kNodes_max) {
      return failure(Code::InvalidModel, "functions expand to more than {} nodes", kNodes_max);
    }
    const Node call = graph.node(id);
    if (call.inputs.size() > body.inputs().size() || call.outputs.size() > body.outputs().size()) {
      return failure(Code::InvalidModel,
                     "function {} has {} inputs and {} outputs, the call has {} and {}",
                     function.name, body.inputs().size(), body.outputs().size(), call.inputs.size(),
                     call.outputs.size());
    }
    graph.remove_node(id);
    ValueMap map = map_values(graph, body, call);
    SDX_ASSIGN(const std::vector<NodeId> order, body.topological_order());
    for (const NodeId inner : order) add_copy(graph, body.node(inner), call, map);
    return {};
  }

  ValueMap map_values(Graph& graph, const Graph& body, const Node& call) {
    ValueMap map(body.value_count(), kNoValue);
    for (std::size_t i = 0; i < body.inputs().size(); ++i) {
      map[body.inputs()[i]] = i < call.inputs.size() ? call.inputs[i] : kNoValue;
    }
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      const ValueId inner = body.outputs()[i];
      if (call.outputs[i] == kNoValue) continue;
      if (!body.value(inner).is_input && !body.value(inner).constant && map[inner] == kNoValue) {
        map[inner] = call.outputs[i];
        continue;
      }
      // The function hands an input, a constant or one value twice out.
      if (map[inner] == kNoValue) map[inner] = add_value(graph, body.value(inner));
      Node identity;
      identity.op_type = "Identity";
      identity.opset = std::max<std::int64_t>(1, model_.opset(""));
      identity.inputs = {map[inner]};
      identity.outputs = {call.outputs[i]};
      graph.add_node(std::move(identity));
    }
    for (ValueId inner = 0; inner < body.value_count(); ++inner) {
      const Value& value = body.value(inner);
      if (map[inner] == kNoValue && !value.is_input) map[inner] = add_value(graph, value);
    }
    return map;
  }

  static ValueId add_value(Graph& graph, const Value& source) {
    const ValueId added = graph.add_value(graph.unique_name(source.name), source.type);
    if (source.constant) graph.set_constant(added, *source.constant);
    return added;
  }

  /// Where a call is to run, its body is too, as far as the body does not say otherwise.
  static void inherit_annotation(const Node& call, Node& node) {
    const auto is_annotation = [](const auto& entry) { return entry.first == "layer_ann"; };
    if (std::any_of(node.metadata.begin(), node.metadata.end(), is_annotation)) return;
    const auto found = std::find_if(call.metadata.begin(), call.metadata.end(), is_annotation);
    if (found != call.metadata.end()) node.metadata.push_back(*found);
  }

  static void add_copy(Graph& graph, const Node& source, const Node& call, const ValueMap& map) {
    Node node = source;
    node.name = call.name.empty() ? source.name : call.name + "/" + source.name;
    inherit_annotation(call, node);
    for (ValueId& input : node.inputs) input = input == kNoValue ? kNoValue : map[input];
    for (ValueId& output : node.outputs) output = output == kNoValue ? kNoValue : map[output];
    for (Graph* subgraph : subgraphs(node)) {
      subgraph->map_captures([&](ValueId outer) { return map[outer]; });
    }
    graph.add_node(std::move(node));
  }

  /// Attributes that refer to the call's take its value, the function's default, or go.
  static Status resolve_references(Graph& graph, const Node& call, const Function& function) {
    for (NodeId id = 0; id < graph.node_count(); ++id) {
      Attributes resolved;
      for (const auto& [name, attribute] : graph.node(id).attributes) {
        const auto* reference = std::get_if<AttributeReference>(&attribute);
        const Attribute* value = &attribute;
        if (reference != nullptr) {
          value = call.attributes.find(reference->name);
          if (value == nullptr) value = function.attribute_defaults.find(reference->name);
        }
        if (value != nullptr) resolved.set(name, *value);
      }
      graph.node(id).attributes = std::move(resolved);
      for (Graph* subgraph : subgraphs(graph.node(id))) {
        SDX_TRY(resolve_references(*subgraph, call, function));
      }
    }
    return {};
  }

  Model& model_;
  std::unordered_map<std::string, const Function*> functions_;
  std::size_t node_count_ = 0;
};

}  // namespace

Status inline_functions(Model& model) {
  if (model.functions.empty()) return {};
  SDX_TRY(Inliner(model).inline_graph(model.graph, 0));
  model.functions.clear();
  return {};
}

}  // namespace sardonyx
