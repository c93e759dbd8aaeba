#include "passes/match.h"
#include "passes/passes.h"

namespace sardonyx {

namespace {

/// x / 2 * (1 + erf(x / sqrt(2))) in the orders in which exporters write it.
class GeluFuser {
 public:
  explicit GeluFuser(Graph& graph) : graph_(graph) {}

  Status run() {
    SDX_ASSIGN(const std::vector<NodeId> order, graph_.topological_order());
    for (const NodeId id : order) {
      if (is_op(graph_, id, "Erf")) fuse(id);
    }
    return {};
  }

 private:
  NodeId next_of(NodeId id) const { return graph_.sole_consumer(graph_.node(id).outputs[0]); }

  /// x of x / sqrt(2) or x * (1 / sqrt(2)).
  ValueId scaled_input(NodeId erf) const {
    const NodeId before = graph_.value(graph_.node(erf).inputs[0]).producer;
    if (is_op(graph_, before, "Div") &&
        is_number(graph_, graph_.node(before).inputs[1], 1.41421356F)) {
      return graph_.node(before).inputs[0];
    }
    if (!is_op(graph_, before, "Mul")) return kNoValue;
    const auto& inputs = graph_.node(before).inputs;
    if (is_number(graph_, inputs[1], 0.70710678F)) return inputs[0];
    return is_number(graph_, inputs[0], 0.70710678F) ? inputs[1] : kNoValue;
  }

  bool is_half_of(ValueId value, ValueId x) const {
    const NodeId producer = graph_.value(value).producer;
    if (!is_op(graph_, producer, "Mul")) return false;
    const ValueId half = other_input(graph_.node(producer), x);
    return half != kNoValue && is_number(graph_, half, 0.5F);
  }

  void fuse(NodeId erf) {
    const ValueId x = scaled_input(erf);
    if (x == kNoValue || graph_.value(x).type.dtype != DType::Float32) return;
    const NodeId sum = next_of(erf);
    if (!is_op(graph_, sum, "Add")) return;
    const ValueId one = other_input(graph_.node(sum), graph_.node(erf).outputs[0]);
    if (one == kNoValue || !is_number(graph_, one, 1)) return;
    const NodeId product = next_of(sum);
    if (!is_op(graph_, product, "Mul")) return;
    const ValueId factor = other_input(graph_.node(product), graph_.node(sum).outputs[0]);
    if (factor == kNoValue) return;
    if (is_half_of(factor, x)) return replace(product, x);
    const NodeId last = next_of(product);
    if (!is_op(graph_, last, "Mul")) return;
    const ValueId rest = other_input(graph_.node(last), graph_.node(product).outputs[0]);
    const bool is_gelu = (factor == x && rest != kNoValue && is_number(graph_, rest, 0.5F)) ||
                         (rest == x && is_number(graph_, factor, 0.5F));
    if (is_gelu) replace(last, x);
  }

  /// The nodes before `last` die when nothing else uses them.
  void replace(NodeId last, ValueId x) {
    if (!have_same_rank(graph_, x, graph_.node(last).outputs[0])) return;
    Node gelu;
    gelu.op_type = "Gelu";
    gelu.opset = 20;
    gelu.name = graph_.node(last).name;
    gelu.inputs = {x};
    gelu.outputs = graph_.node(last).outputs;
    graph_.remove_node(last);
    graph_.add_node(std::move(gelu));
  }

  Graph& graph_;
};

}  // namespace

Status fuse_gelu(Graph& graph, const PassOptions&) {
  return for_each_graph(graph, [](Graph& part) { return GeluFuser(part).run(); });
}

}  // namespace sardonyx
