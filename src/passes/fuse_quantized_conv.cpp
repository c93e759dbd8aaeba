#include <algorithm>
#include <optional>

#include "passes/passes.h"
#include "passes/quantized.h"

namespace sardonyx {

namespace {

/// DequantizeLinear, Conv, Relu and QuantizeLinear, as quantisers write them around each
/// convolution, become one on integers.
class QuantizedConvFuser {
 public:
  explicit QuantizedConvFuser(Graph& graph) : graph_(graph) {}

  Status run() {
    SDX_ASSIGN(const std::vector<NodeId> order, graph_.topological_order());
    for (const NodeId id : order) {
      if (is_op(graph_, id, "Conv")) fuse(id);
    }
    return {};
  }

 private:
  const Tensor* constant(ValueId id) const {
    if (id == kNoValue) return nullptr;
    const auto& value = graph_.value(id).constant;
    return value ? &*value : nullptr;
  }

  std::optional<std::int64_t> count_of(ValueId id) const {
    const auto& shape = graph_.value(id).type.shape;
    return shape && shape->is_static() ? shape->element_count() : std::nullopt;
  }

  /// Whether a zero point is left out or a constant of zeros.
  bool is_zero(ValueId id) const {
    if (id == kNoValue) return true;
    const Tensor* zeros = constant(id);
    if (zeros == nullptr) return false;
    const auto bytes = zeros->values<std::uint8_t>();
    return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
  }

  void fuse(NodeId id) {
    const Node& conv = graph_.node(id);
    const Node* x = dequantized(graph_, conv.inputs[0]);
    const Node* w = dequantized(graph_, conv.inputs[1]);
    if (x == nullptr || w == nullptr || !has_one_scale(graph_, *x)) return;
    const Tensor* weight = constant(w->inputs[0]);
    if (weight == nullptr || !is_8_bit(weight->dtype()) || weight->rank() < 3) return;
    if (!is_8_bit(graph_.value(x->inputs[0]).type.dtype)) return;
    const auto scales = count_of(w->inputs[1]);
    const bool per_channel = scales == weight->dim(0) && w->attributes.get_int("axis", 1) == 0;
    if (scales != 1 && !per_channel) return;
    NodeId last = graph_.sole_consumer(conv.outputs[0]);
    bool has_relu = false;
    if (is_op(graph_, last, "Relu")) {
      has_relu = true;
      last = graph_.sole_consumer(graph_.node(last).outputs[0]);
    }
    if (!is_plain_quantize(graph_, last)) return;
    const auto bias = integer_bias(conv, *x, *w);
    if (!bias) return;
    replace(id, last, *x, *w, *bias, has_relu);
  }

  /// The bias in units of the product's scale: as the model has it, or made of a float constant.
  std::optional<ValueId> integer_bias(const Node& conv, const Node& x, const Node& w) {
    const ValueId bias = input_or_none(conv, 2);
    if (bias == kNoValue) return kNoValue;
    const Node* node = dequantized(graph_, bias);
    if (node == nullptr) return std::nullopt;
    const Tensor* values = constant(node->inputs[0]);
    const Tensor* scale = constant(node->inputs[1]);
    const Tensor* x_scale = constant(x.inputs[1]);
    const Tensor* w_scale = constant(w.inputs[1]);
    const bool is_there = values != nullptr && scale != nullptr && x_scale != nullptr &&
                          w_scale != nullptr && values->dtype() == DType::Int32;
    if (!is_there || !is_zero(input_or_none(*node, 2))) return std::nullopt;
    const auto own = scale->values<float>();
    const auto weights = w_scale->values<float>();
    if (own.size() != 1 && own.size() != weights.size()) return std::nullopt;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const float expected = x_scale->values<float>()[0] * weights[i];
      const float found = own[own.size() == 1 ? 0 : i];
      if (!(found >= expected * (1 - 1e-5F) && found <= expected * (1 + 1e-5F))) {
        return std::nullopt;
      }
    }
    return node->inputs[0];
  }

  void replace(NodeId id, NodeId last, const Node& x, const Node& w, ValueId bias, bool has_relu) {
    const Node conv = graph_.node(id);
    const Node quantize = graph_.node(last);
    Node fused;
    fused.domain = "ai.sardonyx";
    fused.op_type = "QLinearConv";
    fused.opset = 1;
    fused.name = conv.name;
    fused.attributes = conv.attributes;
    if (has_relu) fused.attributes.set("activation", std::string("Relu"));
    fused.inputs = {x.inputs[0],        x.inputs[1],        input_or_none(x, 2),
                    w.inputs[0],        w.inputs[1],        input_or_none(w, 2),
                    quantize.inputs[1], quantize.inputs[2], bias};
    fused.outputs = quantize.outputs;
    NodeId next = graph_.sole_consumer(conv.outputs[0]);
    graph_.remove_node(last);
    if (has_relu) graph_.remove_node(next);
    graph_.remove_node(id);
    graph_.add_node(std::move(fused));
  }

  Graph& graph_;
};

}  // namespace

Status fuse_quantized_conv(Graph& graph, const PassOptions&) {
  return for_each_graph(graph, [](Graph& part) { return QuantizedConvFuser(part).run(); });
}

}  // namespace sardonyx
