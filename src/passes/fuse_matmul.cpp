#include "passes/match.h"
#include "passes/passes.h"

namespace sardonyx {

namespace {

/// MatMul with a scaling, a bias, a sum and an activation after it becomes one product.
class MatMulFuser {
 public:
  explicit MatMulFuser(Graph& graph) : graph_(graph) {}

  Status run() {
    SDX_ASSIGN(const std::vector<NodeId> order, graph_.topological_order());
    for (const NodeId id : order) {
      if (!is_op(graph_, id, "MatMul") || !is_float(graph_.node(id).inputs[0])) continue;
      fuse_scale(id);
      fuse_bias(id);
      fuse_sum(id);
      fuse_activation(id);
    }
    return {};
  }

 private:
  bool is_float(ValueId id) const { return graph_.value(id).type.dtype == DType::Float32; }

  ValueId output(NodeId id) const { return graph_.node(id).outputs[0]; }

  void absorb(NodeId id, NodeId next) {
    const ValueId result = output(next);
    graph_.remove_node(next);
    graph_.replace_node_output(id, 0, result);
    Node& node = graph_.node(id);
    node.domain = "ai.sardonyx";
    node.opset = 1;
  }

  void set_operand(NodeId id, std::size_t index, ValueId value) {
    std::vector<ValueId> inputs = graph_.node(id).inputs;
    if (inputs.size() <= index) inputs.resize(index + 1, kNoValue);
    inputs[index] = value;
    graph_.set_inputs(id, std::move(inputs));
  }

  /// A number of rank 0 or 1 leaves the rank of the product as it is.
  bool is_plain_scalar(ValueId id) const {
    return scalar_constant(graph_, id).has_value() && graph_.value(id).constant->rank() <= 1;
  }

  void fuse_scale(NodeId id) {
    const NodeId next = graph_.sole_consumer(output(id));
    const bool is_division = is_op(graph_, next, "Div");
    if (!is_division && !is_op(graph_, next, "Mul")) return;
    if (!has_rank_2(id)) return;
    const Node& node = graph_.node(next);
    if (is_division && node.inputs[0] != output(id)) return;
    const ValueId factor = other_input(node, output(id));
    if (factor == kNoValue || !is_plain_scalar(factor)) return;
    const float value = *scalar_constant(graph_, factor);
    if (is_division && value == 0) return;
    absorb(id, next);
    graph_.node(id).attributes.set("alpha", is_division ? 1 / value : value);
  }

  /// Products of vectors have another rank than what is added to them might give, and one by a
  /// vector has its rows where others have columns.
  bool has_rank_2(NodeId id) const {
    const auto& shape = graph_.value(output(id)).type.shape;
    const auto& b = graph_.value(graph_.node(id).inputs[1]).type.shape;
    return shape && shape->rank() >= 2 && b && b->rank() >= 2;
  }

  void fuse_bias(NodeId id) {
    const NodeId next = graph_.sole_consumer(output(id));
    if (!is_op(graph_, next, "Add") || !has_rank_2(id)) return;
    const ValueId bias = other_input(graph_.node(next), output(id));
    if (bias == kNoValue || !graph_.value(bias).constant) return;
    const Tensor& constant = *graph_.value(bias).constant;
    const Shape& shape = *graph_.value(output(id)).type.shape;
    const Dim columns = shape[shape.rank() - 1];
    if (constant.rank() != 1 || !is_known(columns) || constant.dim(0) != columns) return;
    set_operand(id, 2, bias);
    absorb(id, next);
  }

  void fuse_sum(NodeId id) {
    const NodeId next = graph_.sole_consumer(output(id));
    if (!is_op(graph_, next, "Add") || !has_rank_2(id)) return;
    const ValueId other = other_input(graph_.node(next), output(id));
    const bool fits = other != kNoValue && other != output(id) && !graph_.value(other).constant &&
                      have_same_shape(graph_, output(id), other);
    if (!fits) return;
    set_operand(id, 3, other);
    absorb(id, next);
  }

  void fuse_activation(NodeId id) {
    const NodeId next = graph_.sole_consumer(output(id));
    std::string name;
    for (const char* candidate : {"Relu", "Tanh", "Sigmoid", "Gelu"}) {
      if (is_op(graph_, next, candidate)) name = candidate;
    }
    if (name.empty()) return;
    if (name == "Gelu" &&
        graph_.node(next).attributes.get_string("approximate", "none") != "none") {
      name = "FastGelu";
    }
    absorb(id, next);
    graph_.node(id).attributes.set("activation", name);
  }

  Graph& graph_;
};

}  // namespace

Status fuse_matmul(Graph& graph, const PassOptions&) {
  return for_each_graph(graph, [](Graph& part) { return MatMulFuser(part).run(); });
}

}  // namespace sardonyx
