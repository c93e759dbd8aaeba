#include "passes/passes.h"
#include "passes/quantized.h"

namespace sardonyx {

namespace {

/// The DequantizeLinear of 8 bits with one scale that makes the value, or null.
const Node* term(const Graph& graph, ValueId id) {
  const Node* node = dequantized(graph, id);
  if (node == nullptr || !has_one_scale(graph, *node)) return nullptr;
  return is_8_bit(graph.value(node->inputs[0]).type.dtype) ? node : nullptr;
}

void fuse(Graph& graph, NodeId id) {
  const Node& add = graph.node(id);
  const Node* a = term(graph, add.inputs[0]);
  const Node* b = term(graph, add.inputs[1]);
  if (a == nullptr || b == nullptr || !have_same_shape(graph, a->inputs[0], b->inputs[0])) return;
  const NodeId next = graph.sole_consumer(add.outputs[0]);
  const bool has_relu = is_op(graph, next, "Relu");
  const NodeId last = has_relu ? graph.sole_consumer(graph.node(next).outputs[0]) : next;
  if (!is_plain_quantize(graph, last)) return;
  const Node& quantize = graph.node(last);
  const DType dtype = graph.value(quantize.inputs[2]).type.dtype;
  const bool is_one_type = graph.value(a->inputs[0]).type.dtype == dtype &&
                           graph.value(b->inputs[0]).type.dtype == dtype;
  if (!is_one_type) return;
  Node fused;
  fused.domain = "ai.sardonyx";
  fused.op_type = "QLinearAdd";
  fused.opset = 1;
  fused.name = add.name;
  if (has_relu) fused.attributes.set("activation", std::string("Relu"));
  fused.inputs = {a->inputs[0], a->inputs[1],         input_or_none(*a, 2), b->inputs[0],
                  b->inputs[1], input_or_none(*b, 2), quantize.inputs[1],   quantize.inputs[2]};
  fused.outputs = quantize.outputs;
  graph.remove_node(last);
  if (has_relu) graph.remove_node(next);
  graph.remove_node(id);
  graph.add_node(std::move(fused));
}

Status run(Graph& graph) {
  SDX_ASSIGN(const std::vector<NodeId> order, graph.topological_order());
  for (const NodeId id : order) {
    if (is_op(graph, id, "Add") && graph.node(id).opset >= 7) fuse(graph, id);
  }
  return {};
}

}  // namespace

Status fuse_quantized_add(Graph& graph, const PassOptions&) {
  return for_each_graph(graph, [](Graph& part) { return run(part); });
}

}  // namespace sardonyx
