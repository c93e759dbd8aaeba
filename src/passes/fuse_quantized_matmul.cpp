#include "passes/passes.h"
#include "passes/quantized.h"

namespace sardonyx {

namespace {

/// Products of 8-bit numbers whose sum fits into 32 bits, whatever they are.
constexpr Dim kMostTerms = 32768;

/// A Gemm or MatMul of two DequantizeLinear, the second of a weight, becomes a product of integers
/// that is scaled to floats: the weight never exists as floats.
class QuantizedMatMulFuser {
 public:
  explicit QuantizedMatMulFuser(Graph& graph) : graph_(graph) {}

  Status run() {
    SDX_ASSIGN(const std::vector<NodeId> order, graph_.topological_order());
    for (const NodeId id : order) {
      if (is_op(graph_, id, "Gemm") || is_op(graph_, id, "MatMul")) fuse(id);
    }
    return {};
  }

 private:
  void fuse(NodeId id) {
    const Node& node = graph_.node(id);
    if (!is_plain(node)) return;
    const Node* x = dequantized(graph_, node.inputs[0]);
    const Node* w = dequantized(graph_, node.inputs[1]);
    if (x == nullptr || w == nullptr || !has_one_scale(graph_, *x)) return;
    const Type& x_type = graph_.value(x->inputs[0]).type;
    if (!is_8_bit(x_type.dtype) || !x_type.shape || x_type.shape->rank() < 2) return;
    const auto& weight = graph_.value(w->inputs[0]).constant;
    if (!weight || !is_8_bit(weight->dtype()) || weight->rank() != 2) return;
    const bool is_transposed = node.attributes.get_int("transB", 0) != 0;
    const int column_axis = is_transposed ? 0 : 1;
    const Dim columns = weight->dim(column_axis);
    if (weight->dim(1 - column_axis) > kMostTerms) return;
    if (!scale_fits(*w, column_axis, columns) || !bias_fits(node, columns)) return;
    replace(id, *x, *w, is_transposed);
  }

  /// Without factors and with A as it is.
  static bool is_plain(const Node& node) {
    const Attributes& attributes = node.attributes;
    const bool has_bias = input_or_none(node, 2) != kNoValue;
    return attributes.get_float("alpha", 1) == 1 && attributes.get_int("transA", 0) == 0 &&
           (!has_bias || attributes.get_float("beta", 1) == 1);
  }

  /// Whether the weight has one float32 scale, or one a column of the product.
  bool scale_fits(const Node& w, int column_axis, Dim columns) const {
    if (has_one_scale(graph_, w)) return true;
    const Type& scale = graph_.value(w.inputs[1]).type;
    const std::int64_t axis = w.attributes.get_int("axis", 1);
    return scale.dtype == DType::Float32 && scale.shape == Shape{columns} &&
           (axis == column_axis || axis == column_axis - 2);
  }

  bool bias_fits(const Node& node, Dim columns) const {
    const ValueId bias = input_or_none(node, 2);
    return bias == kNoValue || graph_.value(bias).type.shape == Shape{columns};
  }

  /// [n, k] to [k, n]; the constant is made with the other folded weights.
  ValueId transposed(ValueId weight) {
    const Type& type = graph_.value(weight).type;
    const Shape& shape = *type.shape;
    Node node;
    node.op_type = "Transpose";
    node.opset = 13;
    node.attributes.set("perm", std::vector<std::int64_t>{1, 0});
    node.inputs = {weight};
    const std::string name = graph_.unique_name(graph_.value(weight).name + "_transposed");
    const ValueId made =
        graph_.add_value(name, Type::tensor(type.dtype, Shape{shape[1], shape[0]}));
    node.outputs = {made};
    graph_.add_node(std::move(node));
    return made;
  }

  void replace(NodeId id, const Node& x, const Node& w, bool is_transposed) {
    const Node former = graph_.node(id);
    Node fused = scaled_product(former.name);
    fused.inputs = {x.inputs[0],
                    w.inputs[0],
                    x.inputs[1],
                    w.inputs[1],
                    input_or_none(x, 2),
                    input_or_none(w, 2),
                    input_or_none(former, 2)};
    fused.outputs = former.outputs;
    graph_.remove_node(id);
    if (is_transposed) fused.inputs[1] = transposed(fused.inputs[1]);
    graph_.add_node(std::move(fused));
  }

  Graph& graph_;
};

}  // namespace

Status fuse_quantized_matmul(Graph& graph, const PassOptions&) {
  return for_each_graph(graph, [](Graph& part) { return QuantizedMatMulFuser(part).run(); });
}

}  // namespace sardonyx
