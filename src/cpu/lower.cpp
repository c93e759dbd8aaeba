#include "cpu/lower.h"

#include "cpu/registry.h"

namespace sardonyx {

namespace {

std::vector<SlotId> slots_of(const std::vector<ValueId>& values) {
  static_assert(kNoValue == kNoSlot);
  return {values.begin(), values.end()};
}

Result<Instruction> lower_node(const Graph& graph, const Node& node, PackedWeights& weights,
                               int thread_count) {
  SDX_ASSIGN(const OpSchema* schema, find_schema(node.domain, node.op_type, node.opset));
  const KernelRequest request(graph, node, *schema, weights, thread_count);
  SDX_ASSIGN(ChosenKernel chosen, choose_kernel(request));
  Instruction instruction;
  instruction.kernel = std::move(chosen.kernel);
  instruction.flags = chosen.flags;
  instruction.inputs = slots_of(node.inputs);
  for (const ValueId value : node.implicit_inputs) instruction.inputs.push_back(value);
  instruction.outputs = slots_of(node.outputs);
  instruction.description = node.describe(graph);
  instruction.node_name = node.name;
  instruction.op_type = node.op_type;
  return instruction;
}

}  // namespace

Result<Program> lower(const Graph& graph, PackedWeights& weights, int thread_count) {
  Program program;
  program.slot_count = static_cast<std::uint32_t>(graph.value_count());
  program.inputs = slots_of(graph.inputs());
  program.outputs = slots_of(graph.outputs());
  for (const Capture& capture : graph.captures()) program.captures.push_back(capture.inner);
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.is_captured) continue;
    if (value.use_count == 0 && !value.is_output) continue;
    if (value.constant) program.constants.emplace_back(id, *value.constant);
    if (value.sparse_constant) program.constants.emplace_back(id, value.sparse_constant);
  }
  SDX_ASSIGN(const std::vector<NodeId> order, graph.topological_order());
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    auto instruction = lower_node(graph, node, weights, thread_count);
    if (!instruction.ok()) {
      return std::move(instruction).take_status().with("compiling " + node.describe(graph));
    }
    program.instructions.push_back(std::move(instruction).value());
  }
  return program;
}

}  // namespace sardonyx
