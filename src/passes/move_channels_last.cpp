#include "passes/move_channels_last.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"

namespace sardonyx {

namespace {

constexpr auto kElementwise = std::to_array<std::string_view>(
    {"Relu",     "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish",  "Elu",     "Selu",
     "Softplus", "Erf",       "Exp",     "Log",  "Sqrt",        "Abs",        "Neg",     "Floor",
     "Ceil",     "Cast",      "Gelu",    "Clip", "Softsign",    "Add",        "Sub",     "Mul",
     "Div",      "Pow",       "Max",     "Min",  "Sum",         "Reciprocal", "Identity"});

std::vector<std::int64_t> to_last_order(int rank) {
  std::vector<std::int64_t> order = {0};
  for (int axis = 2; axis < rank; ++axis) order.push_back(axis);
  order.push_back(1);
  return order;
}

std::vector<std::int64_t> to_first_order(int rank) {
  std::vector<std::int64_t> order = {0, rank - 1};
  for (int axis = 1; axis < rank - 1; ++axis) order.push_back(axis);
  return order;
}

class Mover {
 public:
  Mover(Graph& graph, std::span<const NodeId> nodes, std::span<const NodeId> free,
        std::int64_t opset)
      : graph_(graph),
        nodes_(nodes.begin(), nodes.end()),
        free_(free.begin(), free.end()),
        opset_(opset) {}

  Result<std::vector<NodeId>> run() {
    SDX_ASSIGN(const std::vector<NodeId> order, graph_.topological_order());
    for (const NodeId id : order) {
      if (nodes_.count(id) != 0) {
        if (can_move(id)) move(id);
      } else if (free_.count(id) != 0 && can_follow(id)) {
        follow(id);
      }
    }
    for (const auto& [first, last] : made_) {
      const Value& value = graph_.value(first);
      if (value.use_count == 0 && !value.is_output) continue;
      add_transpose(last, first, to_first_order(value.type.shape->rank()));
    }
    return std::move(moved_);
  }

 private:
  bool has_channels(ValueId id) const {
    if (id == kNoValue) return false;
    const Type& type = graph_.value(id).type;
    return type.is_tensor() && type.shape && type.shape->rank() >= 3;
  }

  bool can_move(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.inputs.empty() || node.outputs.empty() || !has_channels(node.inputs[0]) ||
        !has_channels(node.outputs[0])) {
      return false;
    }
    return std::all_of(node.outputs.begin() + 1, node.outputs.end(), [&](ValueId output) {
      return output == kNoValue ||
             (graph_.value(output).use_count == 0 && !graph_.value(output).is_output);
    });
  }

  bool is_single(ValueId id) const {
    const auto& shape = graph_.value(id).type.shape;
    return shape && shape->element_count() == 1;
  }

  /// Every input has its channels last already, or no channels at all.
  bool can_follow(NodeId id) const {
    const Node& node = graph_.node(id);
    const bool is_known = node.domain.empty() && std::find(kElementwise.begin(), kElementwise.end(),
                                                           node.op_type) != kElementwise.end();
    if (!is_known || node.outputs.size() != 1 || !has_channels(node.outputs[0])) return false;
    const int rank = graph_.value(node.outputs[0]).type.shape->rank();
    bool has_last = false;
    for (const ValueId input : node.inputs) {
      if (input == kNoValue) continue;
      const bool is_last = last_.count(input) != 0;
      if (is_last && graph_.value(input).type.shape->rank() != rank) return false;
      if (!is_last && !is_single(input)) return false;
      has_last = has_last || is_last;
    }
    return has_last;
  }

  Type last_type(const Type& type) const {
    Shape shape = *type.shape;
    const auto order = to_last_order(shape.rank());
    for (int axis = 0; axis < shape.rank(); ++axis) {
      shape[axis] = (*type.shape)[static_cast<int>(order[static_cast<std::size_t>(axis)])];
    }
    return Type::tensor(type.dtype, shape);
  }

  ValueId new_twin(ValueId id) {
    const std::string name = graph_.unique_name(graph_.value(id).name + "_nhwc");
    return graph_.add_value(name, last_type(graph_.value(id).type));
  }

  void add_transpose(ValueId from, ValueId to, std::vector<std::int64_t> order) {
    Node node;
    node.op_type = "Transpose";
    node.name = "Transpose_" + graph_.value(to).name;
    node.opset = opset_;
    node.attributes.set("perm", std::move(order));
    node.inputs = {from};
    node.outputs = {to};
    graph_.add_node(std::move(node));
  }

  ValueId to_last(ValueId id) {
    if (const auto found = last_.find(id); found != last_.end()) return found->second;
    const ValueId twin = new_twin(id);
    add_transpose(id, twin, to_last_order(graph_.value(id).type.shape->rank()));
    last_.emplace(id, twin);
    return twin;
  }

  /// Puts the node in the place of `id`, with a twin of its output.
  NodeId put(NodeId id, Node node) {
    const ValueId output = node.outputs[0];
    graph_.remove_node(id);
    node.outputs = {new_twin(output)};
    last_[output] = node.outputs[0];
    made_.emplace_back(output, node.outputs[0]);
    return graph_.add_node(std::move(node));
  }

  void move(NodeId id) {
    Node node = graph_.node(id);
    node.domain = "com.ms.internal.nhwc";
    node.inputs[0] = to_last(node.inputs[0]);
    moved_.push_back(put(id, std::move(node)));
  }

  void follow(NodeId id) {
    Node node = graph_.node(id);
    for (ValueId& input : node.inputs) {
      if (input != kNoValue && last_.count(input) != 0) input = last_.at(input);
    }
    (void)put(id, std::move(node));
  }

  Graph& graph_;
  std::unordered_set<NodeId> nodes_;
  std::unordered_set<NodeId> free_;
  std::int64_t opset_;
  std::vector<NodeId> moved_;
  /// Values with their channels last, by those that have them first; made_ has what nodes made.
  std::unordered_map<ValueId, ValueId> last_;
  std::vector<std::pair<ValueId, ValueId>> made_;
};

}  // namespace

Result<std::vector<NodeId>> move_channels_last(Graph& graph, std::span<const NodeId> nodes,
                                               std::span<const NodeId> free, std::int64_t opset) {
  return Mover(graph, nodes, free, opset).run();
}

}  // namespace sardonyx
