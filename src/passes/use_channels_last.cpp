#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "passes/passes.h"

namespace sardonyx {

namespace {

constexpr int kRank = 4;
/// Where each axis of [N, C, H, W] stands in [N, H, W, C].
constexpr std::array<int, kRank> kNewAxis = {0, 3, 1, 2};
const std::vector<std::int64_t> kToLast = {0, 2, 3, 1};
const std::vector<std::int64_t> kToFirst = {0, 3, 1, 2};

constexpr std::array kElementwise = std::to_array<std::string_view>({"Relu",
                                                                     "LeakyRelu",
                                                                     "Sigmoid",
                                                                     "Tanh",
                                                                     "HardSigmoid",
                                                                     "HardSwish",
                                                                     "Elu",
                                                                     "Selu",
                                                                     "Softplus",
                                                                     "Erf",
                                                                     "Exp",
                                                                     "Log",
                                                                     "Sqrt",
                                                                     "Abs",
                                                                     "Neg",
                                                                     "Floor",
                                                                     "Ceil",
                                                                     "Round",
                                                                     "Cast",
                                                                     "Gelu",
                                                                     "Mish",
                                                                     "Swish",
                                                                     "Clip",
                                                                     "Softsign",
                                                                     "Add",
                                                                     "Sub",
                                                                     "Mul",
                                                                     "Div",
                                                                     "Pow",
                                                                     "Max",
                                                                     "Min",
                                                                     "Sum",
                                                                     "PRelu",
                                                                     "Reciprocal",
                                                                     "QuickGelu",
                                                                     "Celu",
                                                                     "ThresholdedRelu"});

bool is_one_of(std::span<const std::string_view> names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Rewrites the parts of a graph around 2-D convolutions so that channels come last in memory.
///
/// Each value of a converted node gets a twin in the new layout; the old value is made from it by a
/// Transpose, which dies unless a node that keeps the old layout needs it.
class LayoutRewriter {
 public:
  explicit LayoutRewriter(Graph& graph) : graph_(graph) {}

  Status run() {
    SDX_ASSIGN(const std::vector<NodeId> order, graph_.topological_order());
    for (const NodeId id : order) convert(id);
    return {};
  }

 private:
  const Type& type(ValueId id) const { return graph_.value(id).type; }

  bool is_image(ValueId id) const {
    return id != kNoValue && type(id).is_tensor() && type(id).shape &&
           type(id).shape->rank() == kRank;
  }
  bool is_float_image(ValueId id) const { return is_image(id) && type(id).dtype == DType::Float32; }
  bool has_twin(ValueId id) const { return id != kNoValue && twins_.count(id) != 0; }

  static Type twin_type(const Type& first) {
    Shape shape = *first.shape;
    for (int axis = 0; axis < kRank; ++axis) {
      shape[kNewAxis[static_cast<std::size_t>(axis)]] = (*first.shape)[axis];
    }
    return Type::tensor(first.dtype, shape);
  }

  void add_transpose(ValueId from, ValueId to, const std::vector<std::int64_t>& permutation) {
    Node node;
    node.op_type = "Transpose";
    node.opset = 13;
    node.attributes.set("perm", permutation);
    node.inputs = {from};
    node.outputs = {to};
    graph_.add_node(std::move(node));
  }

  /// The value with channels last, made if need be.
  ValueId to_last(ValueId id) {
    if (const auto found = twins_.find(id); found != twins_.end()) return found->second;
    const ValueId twin =
        graph_.add_value(graph_.unique_name(graph_.value(id).name), twin_type(type(id)));
    add_transpose(id, twin, kToLast);
    twins_.emplace(id, twin);
    return twin;
  }

  /// Puts `node` in the place of `id`; its outputs become twins of the former ones.
  void replace(NodeId id, Node node) {
    const std::vector<ValueId> outputs = graph_.node(id).outputs;
    node.name = graph_.node(id).name;
    graph_.remove_node(id);
    node.outputs.clear();
    std::vector<std::pair<ValueId, ValueId>> made;
    for (const ValueId output : outputs) {
      if (output == kNoValue) {
        node.outputs.push_back(kNoValue);
        continue;
      }
      const ValueId twin =
          graph_.add_value(graph_.unique_name(graph_.value(output).name), twin_type(type(output)));
      node.outputs.push_back(twin);
      made.emplace_back(output, twin);
    }
    graph_.add_node(std::move(node));
    for (const auto& [output, twin] : made) {
      add_transpose(twin, output, kToFirst);
      twins_[output] = twin;
    }
  }

  void convert(NodeId id) {
    // Copies: what is converted adds nodes, and nodes may move then.
    const std::string domain = graph_.node(id).domain;
    const std::string name = graph_.node(id).op_type;
    if (domain == "com.microsoft") {
      if (name == "FusedConv") return convert_conv(id);
      if (name == "QuickGelu") convert_elementwise(id);
      return;
    }
    if (domain == "ai.sardonyx") {
      if (name == "QLinearConv") return convert_integer_conv(id);
      if (name == "QLinearAdd") convert_integer_sum(id);
      return;
    }
    if (!domain.empty()) return;
    if (name == "Conv") return convert_conv(id);
    if (name == "ConvTranspose" || name == "MaxPool" || name == "AveragePool" ||
        name == "GlobalAveragePool" || name == "GlobalMaxPool") {
      return convert_window(id);
    }
    if (is_one_of(kElementwise, name)) return convert_elementwise(id);
    if (name == "QuantizeLinear" || name == "DequantizeLinear") return convert_quantization(id);
    if (name == "Concat") return convert_concat(id);
    if (name == "Split") return convert_split(id);
    if (name == "Softmax" || name == "LogSoftmax") return convert_axis(id);
    if (name == "Resize") return convert_resize(id);
    if (name == "Pad") return convert_pad(id);
    if (name == "ReduceMean" || name == "ReduceMax" || name == "ReduceSum") convert_reduce(id);
  }

  void convert_conv(NodeId id) {
    const Node& node = graph_.node(id);
    if (!is_float_image(node.inputs[0]) || !is_float_image(node.outputs[0])) return;
    Node last = node;
    last.domain = "com.microsoft";
    last.op_type = "NhwcFusedConv";
    last.opset = 1;
    last.inputs[0] = to_last(last.inputs[0]);
    if (last.inputs.size() > 3 && last.inputs[3] != kNoValue) {
      if (!is_float_image(last.inputs[3])) return;
      last.inputs[3] = to_last(last.inputs[3]);
    }
    replace(id, std::move(last));
  }

  void convert_integer_conv(NodeId id) {
    const Node& node = graph_.node(id);
    if (!is_image(node.inputs[0]) || !is_image(node.outputs[0])) return;
    Node last = node;
    last.attributes.set("channels_last", std::int64_t{1});
    last.inputs[0] = to_last(last.inputs[0]);
    replace(id, std::move(last));
  }

  void convert_integer_sum(NodeId id) {
    const Node& node = graph_.node(id);
    const bool follows = has_twin(node.inputs[0]) || has_twin(node.inputs[3]);
    if (!follows || !is_image(node.inputs[0]) || !is_image(node.inputs[3])) return;
    Node last = node;
    last.inputs[0] = to_last(last.inputs[0]);
    last.inputs[3] = to_last(last.inputs[3]);
    replace(id, std::move(last));
  }

  /// A conversion with one scale for all elements.
  void convert_quantization(NodeId id) {
    const Node& node = graph_.node(id);
    const auto& scale = graph_.value(node.inputs[1]).type.shape;
    if (!has_twin(node.inputs[0]) || !is_image(node.outputs[0])) return;
    if (!scale || scale->element_count() != 1 || node.attributes.get_int("block_size", 0) != 0) {
      return;
    }
    Node last = node;
    last.attributes.erase("axis");
    last.inputs[0] = to_last(last.inputs[0]);
    replace(id, std::move(last));
  }

  /// Pools follow their input's layout; transposed convolutions ask for theirs.
  void convert_window(NodeId id) {
    const Node& node = graph_.node(id);
    if (!is_float_image(node.inputs[0]) || node.outputs.size() != 1) return;
    if (!is_float_image(node.outputs[0])) return;
    if (node.op_type != "ConvTranspose" && !has_twin(node.inputs[0])) return;
    Node last = node;
    last.domain = "ai.sardonyx";
    last.opset = 1;
    last.inputs[0] = to_last(last.inputs[0]);
    replace(id, std::move(last));
  }

  /// The constant as it broadcasts against channels last, or kNoValue.
  ValueId constant_to_last(ValueId id) {
    const auto& constant = graph_.value(id).constant;
    if (!constant || constant->dtype() == DType::String || constant->rank() > kRank) {
      return kNoValue;
    }
    if (constant->element_count() == 1 || constant->rank() == 0) return id;
    Shape padded = Shape::filled(kRank, 1);
    for (int axis = 0; axis < constant->rank(); ++axis) {
      padded[kRank - constant->rank() + axis] = constant->dim(axis);
    }
    // Only one axis longer than 1: then the order of elements stays.
    if (std::count_if(padded.begin(), padded.end(), [](Dim dim) { return dim != 1; }) != 1) {
      return kNoValue;
    }
    Shape last = padded;
    for (int axis = 0; axis < kRank; ++axis) {
      last[kNewAxis[static_cast<std::size_t>(axis)]] = padded[axis];
    }
    const ValueId made = graph_.add_value(graph_.unique_name(graph_.value(id).name));
    graph_.set_constant(made, graph_.value(id).constant->reshaped(last));
    return made;
  }

  /// The versions before 7 line the second operand up by an attribute, PRelu's slope by channel.
  static bool broadcasts_by_axis(const Node& node) {
    return node.domain.empty() && node.opset < 7 &&
           (node.attributes.has("broadcast") || node.op_type == "PRelu");
  }

  void convert_elementwise(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.outputs.size() != 1 || !is_image(node.outputs[0])) return;
    if (broadcasts_by_axis(node)) return;
    bool follows = false;
    for (const ValueId input : node.inputs) {
      if (input == kNoValue) continue;
      const bool is_constant = graph_.value(input).constant.has_value();
      if (!is_image(input) && !is_constant) return;
      follows = follows || (has_twin(input) && !is_constant);
    }
    if (!follows) return;
    Node last = node;
    for (ValueId& input : last.inputs) {
      if (input == kNoValue) continue;
      if (!graph_.value(input).constant) {
        input = to_last(input);
        continue;
      }
      const ValueId moved = constant_to_last(input);
      if (moved == kNoValue && !is_image(input)) return;
      input = moved == kNoValue ? to_last(input) : moved;
    }
    replace(id, std::move(last));
  }

  /// Whether most of the node's images are there with channels last.
  bool mostly_last(const std::vector<ValueId>& values) const {
    std::size_t count = 0;
    for (const ValueId value : values) {
      if (!is_image(value)) return false;
      count += has_twin(value);
    }
    return 2 * count >= values.size() && count != 0;
  }

  static std::int64_t moved_axis(std::int64_t axis) {
    return kNewAxis[static_cast<std::size_t>(axis < 0 ? axis + kRank : axis)];
  }
  static bool is_axis(std::int64_t axis) { return axis >= -kRank && axis < kRank; }

  void convert_concat(NodeId id) {
    const Node& node = graph_.node(id);
    const auto* axis = node.attributes.get_if<std::int64_t>("axis");
    if (axis == nullptr || !is_axis(*axis) || !mostly_last(node.inputs)) return;
    Node last = node;
    last.attributes.set("axis", moved_axis(*axis));
    for (ValueId& input : last.inputs) input = to_last(input);
    replace(id, std::move(last));
  }

  void convert_split(NodeId id) {
    const Node& node = graph_.node(id);
    const std::int64_t axis = node.attributes.get_int("axis", 0);
    if (!is_axis(axis) || !has_twin(node.inputs[0])) return;
    for (const ValueId output : node.outputs) {
      if (!is_image(output)) return;
    }
    Node last = node;
    last.attributes.set("axis", moved_axis(axis));
    last.inputs[0] = to_last(last.inputs[0]);
    replace(id, std::move(last));
  }

  void convert_axis(NodeId id) {
    const Node& node = graph_.node(id);
    const std::int64_t axis = node.attributes.get_int("axis", -1);
    if (node.opset < 13 || !is_axis(axis) || !has_twin(node.inputs[0])) return;
    if (!is_image(node.outputs[0])) return;
    Node last = node;
    last.attributes.set("axis", moved_axis(axis));
    last.inputs[0] = to_last(last.inputs[0]);
    replace(id, std::move(last));
  }

  /// A constant vector of four numbers per part ([begin..., end...] for pads) in the new order.
  template <typename T>
  ValueId permuted_vector(ValueId id, int parts) {
    const auto& constant = graph_.value(id).constant;
    if (!constant || constant->dtype() != DTypeOf<T>::value ||
        constant->element_count() != parts * kRank) {
      return kNoValue;
    }
    const auto source = constant->values<T>();
    std::vector<T> moved(source.size());
    for (int part = 0; part < parts; ++part) {
      for (int axis = 0; axis < kRank; ++axis) {
        moved[static_cast<std::size_t>(part * kRank + kNewAxis[static_cast<std::size_t>(axis)])] =
            source[static_cast<std::size_t>(part * kRank + axis)];
      }
    }
    auto tensor = make_tensor<T>(Shape{static_cast<Dim>(moved.size())}, std::span<const T>(moved));
    if (!tensor.ok()) return kNoValue;
    const ValueId made = graph_.add_value(graph_.unique_name(graph_.value(id).name));
    graph_.set_constant(made, std::move(tensor).value());
    return made;
  }

  bool is_left_out(const Node& node, std::size_t i) const {
    if (i >= node.inputs.size() || node.inputs[i] == kNoValue) return true;
    const auto& constant = graph_.value(node.inputs[i]).constant;
    return constant && constant->element_count() == 0;
  }

  void convert_resize(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.opset < 11 || !has_twin(node.inputs[0]) || !is_image(node.outputs[0])) return;
    if (node.attributes.has("axes") || !is_left_out(node, 1)) return;
    Node last = node;
    if (!is_left_out(node, 2)) {
      last.inputs[2] = permuted_vector<float>(node.inputs[2], 1);
      if (last.inputs[2] == kNoValue) return;
    }
    if (!is_left_out(node, 3)) {
      last.inputs[3] = permuted_vector<std::int64_t>(node.inputs[3], 1);
      if (last.inputs[3] == kNoValue) return;
    }
    last.inputs[0] = to_last(node.inputs[0]);
    replace(id, std::move(last));
  }

  void convert_pad(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.opset < 11 || !has_twin(node.inputs[0]) || !is_image(node.outputs[0])) return;
    if (node.inputs.size() > 3 && node.inputs[3] != kNoValue) return;
    Node last = node;
    last.inputs[1] = permuted_vector<std::int64_t>(node.inputs[1], 2);
    if (last.inputs[1] == kNoValue) return;
    last.inputs[0] = to_last(node.inputs[0]);
    replace(id, std::move(last));
  }

  /// Reductions over height and width that keep the axes.
  void convert_reduce(NodeId id) {
    const Node& node = graph_.node(id);
    if (!has_twin(node.inputs[0]) || !is_image(node.outputs[0])) return;
    if (node.attributes.get_int("keepdims", 1) == 0) return;
    std::vector<std::int64_t> axes = node.attributes.get_ints("axes");
    if (node.inputs.size() > 1 && node.inputs[1] != kNoValue) {
      const auto& constant = graph_.value(node.inputs[1]).constant;
      if (!constant || constant->dtype() != DType::Int64) return;
      const auto values = constant->values<std::int64_t>();
      axes.assign(values.begin(), values.end());
    }
    if (axes.empty()) return;
    for (std::int64_t& axis : axes) {
      if (!is_axis(axis)) return;
      axis = moved_axis(axis);
    }
    Node last = node;
    if (node.attributes.has("axes")) {
      last.attributes.set("axes", axes);
    } else {
      auto tensor = make_tensor<std::int64_t>(Shape{static_cast<Dim>(axes.size())},
                                              std::span<const std::int64_t>(axes));
      if (!tensor.ok()) return;
      last.inputs[1] = graph_.add_value(graph_.unique_name("axes"));
      graph_.set_constant(last.inputs[1], std::move(tensor).value());
    }
    last.inputs[0] = to_last(node.inputs[0]);
    replace(id, std::move(last));
  }

  Graph& graph_;
  std::unordered_map<ValueId, ValueId> twins_;
};

}  // namespace

Status use_channels_last(Graph& graph, const PassOptions&) {
  return for_each_graph(graph, [](Graph& part) { return LayoutRewriter(part).run(); });
}

}  // namespace sardonyx
