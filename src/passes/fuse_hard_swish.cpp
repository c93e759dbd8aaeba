#include "passes/match.h"
#include "passes/passes.h"

namespace sardonyx {

namespace {

/// x * clip(x + 3, 0, 6) / 6 in the orders in which exporters write it, and its parts.
class HardSwishFuser {
 public:
  explicit HardSwishFuser(Graph& graph) : graph_(graph) {}

  Status run() {
    SDX_ASSIGN(const std::vector<NodeId> order, graph_.topological_order());
    for (const NodeId id : order) {
      if (is_op(graph_, id, "Clip")) fuse_clip(id);
    }
    SDX_ASSIGN(const std::vector<NodeId> rest, graph_.topological_order());
    for (const NodeId id : rest) {
      if (is_op(graph_, id, "HardSigmoid")) fuse_gate(id);
    }
    return {};
  }

 private:
  static constexpr float kSixth = 1.0F / 6;

  ValueId output(NodeId id) const { return graph_.node(id).outputs[0]; }
  NodeId next_of(NodeId id) const { return graph_.sole_consumer(output(id)); }

  /// x of clip(x + 3, 0, 6).
  ValueId shifted_input(NodeId clip) const {
    const auto bounds = clip_bounds(graph_, graph_.node(clip));
    if (!bounds || bounds->low != 0 || bounds->high != 6) return kNoValue;
    const ValueId sum = graph_.node(clip).inputs[0];
    const NodeId add = graph_.value(sum).producer;
    if (graph_.value(sum).type.dtype != DType::Float32 || !is_op(graph_, add, "Add")) {
      return kNoValue;
    }
    const auto& inputs = graph_.node(add).inputs;
    if (graph_.node(add).opset < 7) return kNoValue;
    if (is_number(graph_, inputs[1], 3)) return inputs[0];
    return is_number(graph_, inputs[0], 3) ? inputs[1] : kNoValue;
  }

  /// Whether the node divides `value` by 6.
  bool is_sixth(NodeId id, ValueId value) const {
    if (is_op(graph_, id, "Div") && graph_.node(id).opset >= 7) {
      return graph_.node(id).inputs[0] == value && is_number(graph_, graph_.node(id).inputs[1], 6);
    }
    if (!is_op(graph_, id, "Mul") || graph_.node(id).opset < 7) return false;
    const ValueId factor = other_input(graph_.node(id), value);
    return factor != kNoValue && is_number(graph_, factor, kSixth);
  }

  bool is_product(NodeId id, ValueId a, ValueId b) const {
    return is_op(graph_, id, "Mul") && graph_.node(id).opset >= 7 &&
           other_input(graph_.node(id), a) == b;
  }

  void fuse_clip(NodeId clip) {
    const ValueId x = shifted_input(clip);
    const NodeId next = next_of(clip);
    if (x == kNoValue || next == kNoNode) return;
    if (is_sixth(next, output(clip))) return replace(next, "HardSigmoid", x);
    if (!is_product(next, x, output(clip))) return;
    const NodeId last = next_of(next);
    if (last != kNoNode && is_sixth(last, output(next))) replace(last, "HardSwish", x);
  }

  /// x * HardSigmoid(x) with the numbers of HardSwish.
  void fuse_gate(NodeId gate) {
    const Node& node = graph_.node(gate);
    const float alpha = node.attributes.get_float("alpha", 0.2F);
    const bool is_match = std::abs(alpha - kSixth) <= 1e-5F * kSixth &&
                          node.attributes.get_float("beta", 0.5F) == 0.5F;
    const ValueId x = node.inputs[0];
    if (!is_match || graph_.value(x).type.dtype != DType::Float32) return;
    const NodeId next = next_of(gate);
    if (next != kNoNode && is_product(next, x, output(gate))) replace(next, "HardSwish", x);
  }

  /// The nodes before `last` die when nothing else uses them.
  void replace(NodeId last, const char* name, ValueId x) {
    if (!have_same_rank(graph_, x, output(last))) return;
    Node fused;
    fused.op_type = name;
    fused.opset = 14;
    fused.name = graph_.node(last).name;
    fused.inputs = {x};
    fused.outputs = graph_.node(last).outputs;
    if (fused.op_type == "HardSigmoid") {
      fused.attributes.set("alpha", kSixth);
      fused.attributes.set("beta", 0.5F);
    }
    graph_.remove_node(last);
    graph_.add_node(std::move(fused));
  }

  Graph& graph_;
};

}  // namespace

Status fuse_hard_swish(Graph& graph, const PassOptions&) {
  return for_each_graph(graph, [](Graph& part) { return HardSwishFuser(part).run(); });
}

}  // namespace sardonyx
