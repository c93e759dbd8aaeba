#include "cpu/lower.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "cpu/custom.h"
#include "cpu/registry.h"

namespace sardonyx {

namespace {

std::vector<SlotId> slots_of(const std::vector<ValueId>& values) {
  static_assert(kNoValue == kNoSlot);
  return {values.begin(), values.end()};
}

Result<ChosenKernel> choose(const Graph& graph, const Node& node, PackedWeights& weights,
                            int thread_count) {
  if (node.custom != nullptr) {
    SDX_ASSIGN(auto kernel, create_custom_kernel(graph, node));
    return ChosenKernel{std::move(kernel), Instruction::kNeverKnown};
  }
  SDX_ASSIGN(const OpSchema* schema, find_schema(node.domain, node.op_type, node.opset));
  return choose_kernel(KernelRequest(graph, node, *schema, weights, thread_count));
}

Result<Instruction> lower_node(const Graph& graph, const Node& node, PackedWeights& weights,
                               int thread_count) {
  SDX_ASSIGN(ChosenKernel chosen, choose(graph, node, weights, thread_count));
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

/// Whether that input is a weight that its kernels read through unaligned loads or byte by byte
/// where it stands: it is not copied, since it may be most of a model.
bool takes_unaligned(const Graph& graph, const Node& node, std::size_t input) {
  if (node.op_type == "Gather") return input == 0;
  constexpr std::string_view kProducts[] = {"Conv",   "FusedConv",     "NhwcConv",
                                            "MatMul", "FusedMatMul",   "TransposeMatMul",
                                            "Gemm",   "NhwcFusedConv", "FusedGemm"};
  const bool is_product =
      std::find(std::begin(kProducts), std::end(kProducts), node.op_type) != std::end(kProducts);
  const Type& type = graph.value(node.inputs[input]).type;
  return is_product && input == 1 && type.dtype == DType::Float32;
}

/// Per value, whether all that use it take it unaligned. What leaves the graph does not stay so.
std::vector<bool> unaligned_uses(const Graph& graph) {
  std::vector<bool> may_stay(graph.value_count(), true);
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.is_removed) continue;
    for (const ValueId value : node.implicit_inputs) may_stay[value] = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId value = node.inputs[i];
      if (value != kNoValue && !takes_unaligned(graph, node, i)) may_stay[value] = false;
    }
  }
  return may_stay;
}

/// Per slot, whether an instruction reads its elements or the caller gets them.
std::vector<bool> slots_read(const Program& program) {
  std::vector<bool> is_read(program.slot_count, false);
  for (const SlotId slot : program.outputs) is_read[slot] = true;
  for (const Instruction& instruction : program.instructions) {
    for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
      const SlotId slot = instruction.inputs[i];
      if (slot != kNoSlot && instruction.kernel->reads(i)) is_read[slot] = true;
    }
  }
  return is_read;
}

/// The constant where kernels can read it; without elements if none does.
/// Errors   InvalidModel for one that is read but has none: a stored program may be damaged.
Result<Tensor> constant_for(const Tensor& constant, bool is_read, bool may_stay) {
  if (!is_read && constant.dtype() != DType::String) {
    return Tensor::view(constant.dtype(), constant.shape(), static_cast<void*>(nullptr));
  }
  if (constant.data() == nullptr && constant.byte_size() != 0) {
    return failure(Code::InvalidModel, "a constant of shape {} is read, but has no elements",
                   constant.shape().to_string());
  }
  if (may_stay) return constant;
  return aligned(constant);
}

/// The constants of the graph that anything uses.
Status add_constants(const Graph& graph, Program& program) {
  const std::vector<bool> may_stay = unaligned_uses(graph);
  const std::vector<bool> is_read = slots_read(program);
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.is_captured) continue;
    if (value.use_count == 0 && !value.is_output) continue;
    if (value.sparse_constant) program.constants.emplace_back(id, value.sparse_constant);
    if (!value.constant) continue;
    SDX_ASSIGN(Tensor tensor, constant_for(*value.constant, is_read[id], may_stay[id]));
    program.constants.emplace_back(id, std::move(tensor));
  }
  return {};
}

}  // namespace

Result<Program> lower(const Graph& graph, PackedWeights& weights, int thread_count) {
  Program program;
  program.slot_count = static_cast<std::uint32_t>(graph.value_count());
  program.inputs = slots_of(graph.inputs());
  program.outputs = slots_of(graph.outputs());
  for (const Capture& capture : graph.captures()) program.captures.push_back(capture.inner);
  SDX_ASSIGN(const std::vector<NodeId> order, graph.topological_order());
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    auto instruction = lower_node(graph, node, weights, thread_count);
    if (!instruction.ok()) {
      return std::move(instruction).take_status().with("compiling " + node.describe(graph));
    }
    program.instructions.push_back(std::move(instruction).value());
  }
  SDX_TRY(add_constants(graph, program));
  return program;
}

}  // namespace sardonyx
