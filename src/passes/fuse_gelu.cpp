#include "passes/match.h"
#include "passes/passes.h"

namespace sardonyx {

namespace {

/// x / 2 * (1 + erf(x / sqrt(2))), and x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), in
/// the orders in which exporters write them.
class GeluFuser {
 public:
  explicit GeluFuser(Graph& graph) : graph_(graph) {}

  Status run() {
    SDX_ASSIGN(const std::vector<NodeId> order, graph_.topological_order());
    for (const NodeId id : order) {
      if (is_op(graph_, id, "Erf")) fuse(id, scaled_input(id), "none");
      if (is_op(graph_, id, "Tanh")) fuse(id, cubic_input(id), "tanh");
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

  /// What a product of numbers and of powers of x comes to.
  struct Monomial {
    float number = 1;
    int degree = 0;
    bool is_valid = true;
  };
  void multiply_in(ValueId value, ValueId x, int depth, Monomial& product) const {
    if (value == x) {
      ++product.degree;
      return;
    }
    if (const auto number = scalar_constant(graph_, value)) {
      product.number *= *number;
      return;
    }
    const NodeId producer = graph_.value(value).producer;
    if (depth > 0 && is_op(graph_, producer, "Mul")) {
      for (const ValueId factor : graph_.node(producer).inputs) {
        multiply_in(factor, x, depth - 1, product);
      }
      return;
    }
    const bool is_cube = is_op(graph_, producer, "Pow") && graph_.node(producer).inputs[0] == x &&
                         is_number(graph_, graph_.node(producer).inputs[1], 3);
    product.degree += 3;
    product.is_valid = product.is_valid && is_cube;
  }

  bool is_cubic_term(ValueId value, ValueId x) const {
    constexpr int kDepth = 3;
    Monomial product;
    multiply_in(value, x, kDepth, product);
    return product.is_valid && product.degree == 3 && is_near(product.number, 0.044715F);
  }

  static bool is_near(float a, float b) { return std::abs(a - b) <= 1e-4F * std::abs(b); }

  /// x of sqrt(2 / pi) * (x + 0.044715 * x^3).
  ValueId cubic_input(NodeId tanh) const {
    const NodeId scaling = graph_.value(graph_.node(tanh).inputs[0]).producer;
    if (!is_op(graph_, scaling, "Mul")) return kNoValue;
    const auto& factors = graph_.node(scaling).inputs;
    const bool is_first = is_number(graph_, factors[0], 0.79788456F);
    if (!is_first && !is_number(graph_, factors[1], 0.79788456F)) return kNoValue;
    const NodeId sum = graph_.value(factors[is_first ? 1 : 0]).producer;
    if (!is_op(graph_, sum, "Add")) return kNoValue;
    const auto& terms = graph_.node(sum).inputs;
    if (is_cubic_term(terms[1], terms[0])) return terms[0];
    return is_cubic_term(terms[0], terms[1]) ? terms[1] : kNoValue;
  }

  void fuse(NodeId erf, ValueId x, const char* approximate) {
    if (x == kNoValue || graph_.value(x).type.dtype != DType::Float32) return;
    const NodeId sum = next_of(erf);
    if (!is_op(graph_, sum, "Add")) return;
    const ValueId one = other_input(graph_.node(sum), graph_.node(erf).outputs[0]);
    if (one == kNoValue || !is_number(graph_, one, 1)) return;
    const NodeId product = next_of(sum);
    if (!is_op(graph_, product, "Mul")) return;
    const ValueId factor = other_input(graph_.node(product), graph_.node(sum).outputs[0]);
    if (factor == kNoValue) return;
    if (is_half_of(factor, x)) return replace(product, x, approximate);
    const NodeId last = next_of(product);
    if (!is_op(graph_, last, "Mul")) return;
    const ValueId rest = other_input(graph_.node(last), graph_.node(product).outputs[0]);
    const bool is_gelu = (factor == x && rest != kNoValue && is_number(graph_, rest, 0.5F)) ||
                         (rest == x && is_number(graph_, factor, 0.5F));
    if (is_gelu) replace(last, x, approximate);
  }

  /// The nodes before `last` die when nothing else uses them.
  void replace(NodeId last, ValueId x, const char* approximate) {
    if (!have_same_rank(graph_, x, graph_.node(last).outputs[0])) return;
    Node gelu;
    gelu.op_type = "Gelu";
    gelu.opset = 20;
    gelu.name = graph_.node(last).name;
    gelu.attributes.set("approximate", std::string(approximate));
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
