#include "passes/match.h"
#include "passes/passes.h"

namespace sardonyx {

namespace {

/// Layer and root-mean-square normalisation over the last axis, written out in pieces:
/// d = x - mean(x) (or x); d / sqrt(mean(d^2) + epsilon) * scale (+ bias).
class NormFuser {
 public:
  explicit NormFuser(Graph& graph) : graph_(graph) {}

  Status run() {
    SDX_ASSIGN(const std::vector<NodeId> order, graph_.topological_order());
    for (const NodeId id : order) {
      if (is_op(graph_, id, "Sqrt")) fuse(id);
    }
    return {};
  }

 private:
  NodeId producer(ValueId id) const { return id == kNoValue ? kNoNode : graph_.value(id).producer; }
  NodeId sole_consumer_of(NodeId id) const {
    return graph_.sole_consumer(graph_.node(id).outputs[0]);
  }

  /// Whether the node is the mean over the last axis, which is kept.
  bool is_mean(NodeId id) const {
    if (!is_op(graph_, id, "ReduceMean")) return false;
    const Node& node = graph_.node(id);
    if (node.attributes.get_int("keepdims", 1) == 0) return false;
    std::vector<std::int64_t> axes = node.attributes.get_ints("axes");
    if (node.inputs.size() > 1 && node.inputs[1] != kNoValue) {
      const auto& constant = graph_.value(node.inputs[1]).constant;
      if (!constant || constant->dtype() != DType::Int64) return false;
      const auto values = constant->values<std::int64_t>();
      axes.assign(values.begin(), values.end());
    }
    const auto& shape = graph_.value(node.inputs[0]).type.shape;
    return axes.size() == 1 && shape && (axes[0] == -1 || axes[0] == shape->rank() - 1);
  }

  /// The value whose square this is, or kNoValue.
  ValueId squared(ValueId id) const {
    const NodeId node = producer(id);
    if (is_op(graph_, node, "Pow") && is_number(graph_, graph_.node(node).inputs[1], 2)) {
      return graph_.node(node).inputs[0];
    }
    if (is_op(graph_, node, "Mul") && graph_.node(node).inputs[0] == graph_.node(node).inputs[1]) {
      return graph_.node(node).inputs[0];
    }
    return kNoValue;
  }

  void fuse(NodeId root) {
    const NodeId sum = producer(graph_.node(root).inputs[0]);
    if (!is_op(graph_, sum, "Add")) return;
    const auto& terms = graph_.node(sum).inputs;
    const bool is_second = scalar_constant(graph_, terms[1]).has_value();
    const auto epsilon = scalar_constant(graph_, terms[is_second ? 1 : 0]);
    const NodeId mean = producer(terms[is_second ? 0 : 1]);
    if (!epsilon || !is_mean(mean)) return;
    const ValueId deviation = squared(graph_.node(mean).inputs[0]);
    if (deviation == kNoValue || graph_.value(deviation).type.dtype != DType::Float32) return;
    const NodeId quotient = quotient_of(root, deviation);
    if (quotient == kNoNode) return;
    finish(quotient, deviation, *epsilon);
  }

  /// deviation / root, or deviation * (1 / root).
  NodeId quotient_of(NodeId root, ValueId deviation) const {
    const NodeId next = sole_consumer_of(root);
    if (is_op(graph_, next, "Div")) {
      const Node& node = graph_.node(next);
      if (node.inputs[0] == deviation) return next;
      // 1 / root, times the deviation.
      if (!is_number(graph_, node.inputs[0], 1)) return kNoNode;
    } else if (!is_op(graph_, next, "Reciprocal")) {
      return kNoNode;
    }
    const NodeId product = sole_consumer_of(next);
    if (!is_op(graph_, product, "Mul")) return kNoNode;
    const ValueId other = other_input(graph_.node(product), graph_.node(next).outputs[0]);
    return other == deviation ? product : kNoNode;
  }

  /// The constant of one number a column that the next node brings, or kNoValue.
  ValueId column_constant(NodeId next, ValueId value, ValueId x) const {
    if (next == kNoNode) return kNoValue;
    const ValueId other = other_input(graph_.node(next), value);
    if (other == kNoValue || !graph_.value(other).constant) return kNoValue;
    const Tensor& constant = *graph_.value(other).constant;
    const auto& shape = graph_.value(x).type.shape;
    if (!shape || shape->rank() == 0 || constant.rank() != 1) return kNoValue;
    return constant.dim(0) == (*shape)[shape->rank() - 1] ? other : kNoValue;
  }

  void finish(NodeId quotient, ValueId deviation, float epsilon) {
    const NodeId scaling = sole_consumer_of(quotient);
    if (!is_op(graph_, scaling, "Mul")) return;
    const ValueId scale = column_constant(scaling, graph_.node(quotient).outputs[0], deviation);
    if (scale == kNoValue) return;
    ValueId x = deviation;
    bool subtracts_mean = false;
    const NodeId difference = producer(deviation);
    if (is_op(graph_, difference, "Sub")) {
      const auto& inputs = graph_.node(difference).inputs;
      const NodeId mean = producer(inputs[1]);
      if (is_mean(mean) && graph_.node(mean).inputs[0] == inputs[0]) {
        x = inputs[0];
        subtracts_mean = true;
      }
    }
    NodeId last = scaling;
    ValueId bias = kNoValue;
    const NodeId addition = sole_consumer_of(scaling);
    if (subtracts_mean && is_op(graph_, addition, "Add")) {
      bias = column_constant(addition, graph_.node(scaling).outputs[0], x);
      if (bias != kNoValue) last = addition;
    }
    replace(last, x, scale, bias, epsilon, subtracts_mean);
  }

  void replace(NodeId last, ValueId x, ValueId scale, ValueId bias, float epsilon,
               bool subtracts_mean) {
    if (!have_same_rank(graph_, x, graph_.node(last).outputs[0])) return;
    Node norm;
    norm.op_type = subtracts_mean ? "LayerNormalization" : "RMSNormalization";
    norm.opset = subtracts_mean ? 17 : 23;
    norm.name = graph_.node(last).name;
    norm.attributes.set("axis", std::int64_t{-1});
    norm.attributes.set("epsilon", epsilon);
    norm.inputs = {x, scale};
    if (bias != kNoValue) norm.inputs.push_back(bias);
    norm.outputs = graph_.node(last).outputs;
    graph_.remove_node(last);
    graph_.add_node(std::move(norm));
  }

  Graph& graph_;
};

}  // namespace

Status fuse_norm(Graph& graph, const PassOptions&) {
  return for_each_graph(graph, [](Graph& part) { return NormFuser(part).run(); });
}

}  // namespace sardonyx
