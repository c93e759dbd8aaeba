#include <optional>

#include "passes/match.h"
#include "passes/passes.h"

namespace sardonyx {

namespace {

struct FusedActivation {
  std::string name;
  std::vector<float> parameters;
};

/// The activation that a node applies to its first input, as fused operators name it.
std::optional<FusedActivation> activation_of(const Graph& graph, const Node& node) {
  const std::string& name = node.op_type;
  if (node.domain == "com.microsoft") {
    if (name != "QuickGelu" || node.attributes.get_float("alpha", 1.702F) != 1.0F) {
      return std::nullopt;
    }
    return FusedActivation{"Silu", {}};
  }
  if (!node.domain.empty()) return std::nullopt;
  if (name == "Relu" || name == "Sigmoid" || name == "Tanh" || name == "HardSwish") {
    return FusedActivation{name, {}};
  }
  if (name == "LeakyRelu") {
    return FusedActivation{name, {node.attributes.get_float("alpha", 0.01F)}};
  }
  if (name == "HardSigmoid") {
    return FusedActivation{
        name, {node.attributes.get_float("alpha", 0.2F), node.attributes.get_float("beta", 0.5F)}};
  }
  if (name != "Clip") return std::nullopt;
  const auto bounds = clip_bounds(graph, node);
  if (!bounds) return std::nullopt;
  return FusedActivation{name, {bounds->low, bounds->high}};
}

class ConvFuser {
 public:
  explicit ConvFuser(Graph& graph) : graph_(graph) {}

  Status run() {
    SDX_ASSIGN(const std::vector<NodeId> order, graph_.topological_order());
    for (const NodeId id : order) {
      if (is_conv(id)) fuse(id);
    }
    return {};
  }

 private:
  bool is_conv(NodeId id) const {
    const Node& node = graph_.node(id);
    return !node.is_removed && node.domain.empty() && node.op_type == "Conv" &&
           graph_.value(node.inputs[0]).type.dtype == DType::Float32;
  }

  void fuse(NodeId id) {
    fuse_sum(id);
    fuse_activation(id);
  }

  NodeId follower(NodeId id) const { return graph_.sole_consumer(graph_.node(id).outputs[0]); }

  /// The follower's output becomes the convolution's own.
  void absorb(NodeId id, NodeId next) {
    const ValueId output = graph_.node(next).outputs[0];
    graph_.remove_node(next);
    graph_.replace_node_output(id, 0, output);
    Node& node = graph_.node(id);
    node.domain = "com.microsoft";
    node.op_type = "FusedConv";
    node.opset = 1;
  }

  /// Add of another tensor of exactly the convolution's shape.
  void fuse_sum(NodeId id) {
    const NodeId next = follower(id);
    if (next == kNoNode) return;
    const Node& add = graph_.node(next);
    if (!add.domain.empty() || add.op_type != "Add" || add.opset < 7) return;
    const ValueId own = graph_.node(id).outputs[0];
    const ValueId other = add.inputs[0] == own ? add.inputs[1] : add.inputs[0];
    if (other == own || graph_.value(other).constant) return;
    const auto& mine = graph_.value(own).type.shape;
    const auto& theirs = graph_.value(other).type.shape;
    if (!mine || !theirs || !(*mine == *theirs)) return;
    // An unknown size could still be 1 on one side.
    for (const Dim dim : *mine) {
      if (dim == kUnknownDim) return;
    }
    std::vector<ValueId> inputs = graph_.node(id).inputs;
    inputs.resize(4, kNoValue);
    inputs[3] = other;
    graph_.set_inputs(id, inputs);
    absorb(id, next);
  }

  void fuse_activation(NodeId id) {
    const NodeId next = follower(id);
    if (next == kNoNode) return;
    const Node& node = graph_.node(next);
    if (node.inputs[0] != graph_.node(id).outputs[0]) return;
    const auto activation = activation_of(graph_, node);
    if (!activation) return;
    absorb(id, next);
    Attributes& attributes = graph_.node(id).attributes;
    attributes.set("activation", activation->name);
    if (!activation->parameters.empty())
      attributes.set("activation_params", activation->parameters);
  }

  Graph& graph_;
};

/// x * Sigmoid(x) becomes QuickGelu with alpha 1.
Status fuse_silu_in(Graph& graph) {
  SDX_ASSIGN(const std::vector<NodeId> order, graph.topological_order());
  for (const NodeId id : order) {
    const Node& sigmoid = graph.node(id);
    if (sigmoid.is_removed || sigmoid.op_type != "Sigmoid" || !sigmoid.domain.empty()) continue;
    const NodeId next = graph.sole_consumer(sigmoid.outputs[0]);
    if (next == kNoNode) continue;
    const Node& product = graph.node(next);
    if (product.op_type != "Mul" || !product.domain.empty() || product.opset < 7) continue;
    const ValueId x = sigmoid.inputs[0];
    const bool is_silu = product.inputs[0] == x || product.inputs[1] == x;
    if (!is_silu || graph.value(x).type.dtype != DType::Float32) continue;
    Node fused;
    fused.domain = "com.microsoft";
    fused.op_type = "QuickGelu";
    fused.opset = 1;
    fused.name = product.name;
    fused.attributes.set("alpha", 1.0F);
    fused.inputs = {x};
    fused.outputs = product.outputs;
    graph.remove_node(next);
    graph.remove_node(id);
    graph.add_node(std::move(fused));
  }
  return {};
}

}  // namespace

Status fuse_silu(Graph& graph, const PassOptions&) {
  return for_each_graph(graph, [](Graph& part) { return fuse_silu_in(part); });
}

Status fuse_conv(Graph& graph, const PassOptions&) {
  return for_each_graph(graph, [](Graph& part) { return ConvFuser(part).run(); });
}

}  // namespace sardonyx
