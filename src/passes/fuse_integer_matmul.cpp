#include "passes/passes.h"
#include "passes/quantized.h"

namespace sardonyx {

namespace {

/// MatMulInteger, Cast to float, Mul by the product of the scales and Add of a bias, as dynamic
/// quantisation writes them, become MatMulIntegerToFloat.
class IntegerMatMulFuser {
 public:
  explicit IntegerMatMulFuser(Graph& graph) : graph_(graph) {}

  Status run() {
    SDX_ASSIGN(const std::vector<NodeId> order, graph_.topological_order());
    for (const NodeId id : order) fuse(id);
    return {};
  }

 private:
  bool has_one_element(ValueId id) const {
    const auto& shape = graph_.value(id).type.shape;
    return shape && shape->is_static() && shape->element_count() == 1;
  }

  /// One number, or one a column of `columns`.
  bool is_per_column(ValueId id, Dim columns) const {
    const auto& shape = graph_.value(id).type.shape;
    if (!shape || !shape->is_static() || graph_.value(id).type.dtype != DType::Float32)
      return false;
    return shape->element_count() == 1 || (shape->rank() == 1 && (*shape)[0] == columns);
  }

  void fuse(NodeId id) {
    if (!is_op(graph_, id, "MatMulInteger")) return;
    const auto& weight = graph_.value(graph_.node(id).inputs[1]).type.shape;
    if (!weight || weight->rank() != 2 || !is_known((*weight)[1])) return;
    const NodeId cast = graph_.sole_consumer(graph_.node(id).outputs[0]);
    if (!is_op(graph_, cast, "Cast") || graph_.node(cast).attributes.get_int("to", 0) != 1) return;
    const NodeId scaling = graph_.sole_consumer(graph_.node(cast).outputs[0]);
    if (!is_op(graph_, scaling, "Mul")) return;
    const ValueId casted = graph_.node(cast).outputs[0];
    const auto& factors = graph_.node(scaling).inputs;
    const ValueId scale = factors[0] == casted ? factors[1] : factors[0];
    const NodeId product = graph_.value(scale).producer;
    if (!is_op(graph_, product, "Mul")) return;
    ValueId a_scale = graph_.node(product).inputs[0];
    ValueId b_scale = graph_.node(product).inputs[1];
    if (!has_one_element(a_scale) || !is_per_column(b_scale, (*weight)[1])) {
      std::swap(a_scale, b_scale);
    }
    if (!has_one_element(a_scale) || !is_per_column(b_scale, (*weight)[1])) return;
    NodeId last = scaling;
    const ValueId bias = bias_after(scaling, (*weight)[1], last);
    const ValueId integers = graph_.node(id).outputs[0];
    if (!have_same_rank(graph_, integers, graph_.node(last).outputs[0])) return;
    replace(id, cast, scaling, last, {a_scale, b_scale, bias});
  }

  /// The constant that an Add after `id` brings, if it has one number a column.
  ValueId bias_after(NodeId id, Dim columns, NodeId& last) const {
    const ValueId output = graph_.node(id).outputs[0];
    const NodeId next = graph_.sole_consumer(output);
    if (!is_op(graph_, next, "Add")) return kNoValue;
    const auto& inputs = graph_.node(next).inputs;
    const ValueId bias = inputs[0] == output ? inputs[1] : inputs[0];
    const auto& shape = graph_.value(bias).type.shape;
    const bool fits =
        graph_.value(bias).constant && shape && shape->rank() == 1 && (*shape)[0] == columns;
    if (!fits) return kNoValue;
    last = next;
    return bias;
  }

  struct Scales {
    ValueId a;
    ValueId b;
    ValueId bias;
  };

  void replace(NodeId id, NodeId cast, NodeId scaling, NodeId last, const Scales& scales) {
    const Node former = graph_.node(id);
    Node fused = scaled_product(former.name);
    fused.inputs = {former.inputs[0],         former.inputs[1],         scales.a,   scales.b,
                    input_or_none(former, 2), input_or_none(former, 3), scales.bias};
    fused.outputs = graph_.node(last).outputs;
    if (last != scaling) graph_.remove_node(last);
    graph_.remove_node(scaling);
    graph_.remove_node(cast);
    graph_.remove_node(id);
    graph_.add_node(std::move(fused));
  }

  Graph& graph_;
};

}  // namespace

Status fuse_integer_matmul(Graph& graph, const PassOptions&) {
  return for_each_graph(graph, [](Graph& part) { return IntegerMatMulFuser(part).run(); });
}

}  // namespace sardonyx
