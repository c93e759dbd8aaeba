#include "passes/passes.h"

namespace sardonyx {

namespace {

bool is_false(const Graph& graph, ValueId id) {
  const auto& constant = graph.value(id).constant;
  return constant && constant->dtype() == DType::Bool && constant->element_count() == 1 &&
         constant->values<std::uint8_t>()[0] == 0;
}

bool is_inference_dropout(const Graph& graph, const Node& node) {
  if (node.op_type != "Dropout" || node.opset < 7) return false;
  if (node.outputs.size() > 1 && node.outputs[1] != kNoValue) {
    const Value& mask = graph.value(node.outputs[1]);
    if (mask.use_count != 0 || mask.is_output) return false;
  }
  return node.inputs.size() < 3 || node.inputs[2] == kNoValue || is_false(graph, node.inputs[2]);
}

bool is_same_cast(const Graph& graph, const Node& node) {
  if (node.op_type != "Cast") return false;
  const Type& type = graph.value(node.inputs[0]).type;
  return type.is_tensor() && type.dtype != DType::Undefined &&
         static_cast<std::int64_t>(type.dtype) == node.attributes.get_int("to", 0);
}

bool is_identity_transpose(const Node& node) {
  if (node.op_type != "Transpose") return false;
  const auto& permutation = node.attributes.get_ints("perm");
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    if (permutation[i] != static_cast<std::int64_t>(i)) return false;
  }
  return !permutation.empty();
}

bool does_nothing(const Graph& graph, const Node& node) {
  return node.domain.empty() && (node.op_type == "Identity" || is_inference_dropout(graph, node) ||
                                 is_same_cast(graph, node) || is_identity_transpose(node));
}

/// Takes a node out between its input and its output. An output of the graph keeps its name: then
/// the node before must make it, if there is one that may.
void bypass(Graph& graph, NodeId id) {
  const ValueId input = graph.node(id).inputs[0];
  const ValueId output = graph.node(id).outputs[0];
  if (!graph.value(output).is_output) {
    graph.remove_node(id);
    graph.replace_uses(output, input);
    return;
  }
  const Value& source = graph.value(input);
  const NodeId producer = source.producer;
  if (producer == kNoNode || source.is_output) return;
  const auto& outputs = graph.node(producer).outputs;
  std::size_t index = 0;
  while (outputs[index] != input) ++index;
  graph.remove_node(id);
  graph.replace_node_output(producer, index, output);
  graph.replace_uses(input, output);
}

/// Transpose(Transpose(x)) becomes one.
void join_transposes(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op_type != "Transpose" || !node.domain.empty()) return;
  const NodeId before = graph.value(node.inputs[0]).producer;
  if (before == kNoNode) return;
  const Node& first = graph.node(before);
  if (first.op_type != "Transpose" || !first.domain.empty()) return;
  const auto& inner = first.attributes.get_ints("perm");
  const auto& outer = node.attributes.get_ints("perm");
  if (inner.empty() || inner.size() != outer.size()) return;
  std::vector<std::int64_t> joined;
  for (const std::int64_t axis : outer) joined.push_back(inner[static_cast<std::size_t>(axis)]);
  graph.node(id).attributes.set("perm", joined);
  graph.set_input(id, 0, first.inputs[0]);
}

}  // namespace

Status remove_no_ops(Graph& graph, const PassOptions&) {
  return for_each_graph(graph, [](Graph& part) -> Status {
    SDX_ASSIGN(const std::vector<NodeId> order, part.topological_order());
    for (const NodeId id : order) {
      if (part.node(id).is_removed) continue;
      join_transposes(part, id);
      if (does_nothing(part, part.node(id))) bypass(part, id);
    }
    return {};
  });
}

}  // namespace sardonyx
