#include "passes/match.h"
#include "passes/passes.h"

namespace sardonyx {

namespace {

/// Weights below this are widened as a whole: that costs little.
constexpr std::size_t kSmall_bytes = std::size_t{64} << 10;

/// Rows of a weight that exporters widen before they are looked up, as they do for embeddings:
/// Gather(Mul(Cast(weight), scale), indices) and the same with DequantizeLinear or Cast alone.
class GatherMover {
 public:
  explicit GatherMover(Graph& graph) : graph_(graph) {}

  Status run() {
    SDX_ASSIGN(const std::vector<NodeId> order, graph_.topological_order());
    for (const NodeId id : order) {
      if (is_op(graph_, id, "Gather") && graph_.node(id).attributes.get_int("axis", 0) == 0) {
        move(id);
      }
    }
    return {};
  }

 private:
  const Tensor* constant(ValueId id) const {
    return id != kNoValue && graph_.value(id).constant ? &*graph_.value(id).constant : nullptr;
  }
  bool is_large_weight(ValueId id) const {
    const Tensor* tensor = constant(id);
    return tensor != nullptr && tensor->rank() >= 1 && tensor->byte_size() >= kSmall_bytes;
  }
  /// The node that makes the value for this one only.
  NodeId own_producer(ValueId id, NodeId consumer) const {
    return graph_.sole_consumer(id) == consumer ? graph_.value(id).producer : kNoNode;
  }

  /// Whether a node widens each element of a large weight by itself.
  bool widens(NodeId id) const {
    if (is_op(graph_, id, "Cast")) return is_large_weight(graph_.node(id).inputs[0]);
    if (!is_op(graph_, id, "DequantizeLinear")) return false;
    const Node& node = graph_.node(id);
    const Tensor* scale = constant(node.inputs[1]);
    return scale != nullptr && scale->rank() == 0 &&
           node.attributes.get_int("block_size", 0) == 0 && is_large_weight(node.inputs[0]);
  }

  /// Whether the constant has one number for all, or one for each row of `weight`.
  bool is_scale_of(ValueId id, const Tensor& weight) const {
    const Tensor* scale = constant(id);
    if (scale == nullptr || scale->rank() > weight.rank()) return false;
    return scale->element_count() == 1 ||
           (scale->rank() == weight.rank() && scale->dim(0) == weight.dim(0) &&
            scale->element_count() == scale->dim(0));
  }

  void move(NodeId id) {
    const NodeId above = own_producer(graph_.node(id).inputs[0], id);
    if (widens(above)) {
      const ValueId last = graph_.node(id).outputs[0];
      const Node gather = take(id);
      add_widened(gather, take(above), last);
      return;
    }
    if (!is_op(graph_, above, "Mul") || graph_.node(above).opset < 7) return;
    for (const std::size_t side : {0, 1}) {
      const Node& mul = graph_.node(above);
      const NodeId widener = own_producer(mul.inputs[side], above);
      if (!widens(widener)) continue;
      const Tensor& weight = *constant(graph_.node(widener).inputs[0]);
      if (!is_scale_of(mul.inputs[1 - side], weight)) continue;
      const Node gather = take(id);
      Node scaled = take(above);
      const ValueId rows = graph_.add_value(graph_.unique_name(gather.name));
      add_widened(gather, take(widener), rows);
      ValueId& scale = scaled.inputs[1 - side];
      if (constant(scale)->element_count() != 1) scale = add_gather(gather, scale);
      scaled.inputs[side] = rows;
      scaled.outputs = gather.outputs;
      graph_.add_node(std::move(scaled));
      return;
    }
  }

  Node take(NodeId id) {
    Node node = graph_.node(id);
    graph_.remove_node(id);
    return node;
  }

  ValueId add_gather(Node gather, ValueId data) {
    const ValueId rows = graph_.add_value(graph_.unique_name(graph_.value(data).name));
    gather.inputs[0] = data;
    gather.outputs = {rows};
    graph_.add_node(std::move(gather));
    return rows;
  }

  void add_widened(const Node& gather, Node widener, ValueId output) {
    widener.inputs[0] = add_gather(gather, widener.inputs[0]);
    widener.outputs = {output};
    graph_.add_node(std::move(widener));
  }

  Graph& graph_;
};

}  // namespace

Status gather_first(Graph& graph, const PassOptions&) {
  return for_each_graph(graph, [](Graph& part) { return GatherMover(part).run(); });
}

}  // namespace sardonyx
