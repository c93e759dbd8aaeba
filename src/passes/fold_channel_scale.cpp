#include <cmath>

#include "passes/match.h"
#include "passes/passes.h"

namespace sardonyx {

namespace {

/// y = x * scale + shift, a pair of numbers for each channel.
struct ChannelAffine {
  std::vector<double> scale;
  std::vector<double> shift;

  explicit ChannelAffine(std::size_t channels) : scale(channels, 1), shift(channels, 0) {}
};

/// What scales and shifts the channels after a convolution goes into its weights and bias.
class ChannelScaleFolder {
 public:
  explicit ChannelScaleFolder(Graph& graph) : graph_(graph) {}

  Status run() {
    SDX_ASSIGN(const std::vector<NodeId> order, graph_.topological_order());
    for (const NodeId id : order) {
      if (!is_foldable(id)) continue;
      bool is_done = false;
      while (!is_done) {
        SDX_ASSIGN(is_done, fold_next(id));
      }
    }
    return {};
  }

 private:
  bool is_floats(ValueId id) const {
    const auto& constant = graph_.value(id).constant;
    return constant && constant->dtype() == DType::Float32;
  }
  bool is_left_out(const Node& node, std::size_t i) const {
    return i >= node.inputs.size() || node.inputs[i] == kNoValue;
  }

  bool is_foldable(NodeId id) const {
    if (!is_op(graph_, id, "Conv") && !is_op(graph_, id, "ConvTranspose")) return false;
    const Node& node = graph_.node(id);
    if (!is_floats(node.inputs[1]) || graph_.value(node.inputs[1]).constant->rank() < 3) {
      return false;
    }
    const Tensor& weight = *graph_.value(node.inputs[1]).constant;
    const std::int64_t groups = node.attributes.get_int("group", 1);
    if (groups < 1 || weight.dim(0) % groups != 0 || weight.element_count() == 0) return false;
    if (is_left_out(node, 2)) return true;
    return is_floats(node.inputs[2]) &&
           graph_.value(node.inputs[2]).constant->element_count() == channels_of(node);
  }

  std::int64_t channels_of(const Node& node) const {
    const Tensor& weight = *graph_.value(node.inputs[1]).constant;
    if (node.op_type == "Conv") return weight.dim(0);
    return weight.dim(1) * node.attributes.get_int("group", 1);
  }

  /// Takes in the node after the convolution; true when there is nothing to take.
  Result<bool> fold_next(NodeId id) {
    const ValueId output = graph_.node(id).outputs[0];
    const NodeId next = graph_.sole_consumer(output);
    if (next == kNoNode || !graph_.node(next).domain.empty()) return true;
    const auto affine = graph_.node(next).op_type == "BatchNormalization"
                            ? normalization(next, channels_of(graph_.node(id)))
                            : arithmetic(id, next);
    if (!affine) return true;
    SDX_TRY(scale_weight(id, *affine));
    SDX_TRY(set_bias(id, *affine));
    const ValueId result = graph_.node(next).outputs[0];
    graph_.remove_node(next);
    graph_.replace_node_output(id, 0, result);
    return false;
  }

  /// BatchNormalization by constants, as it is at inference.
  std::optional<ChannelAffine> normalization(NodeId id, std::int64_t channels) const {
    const Node& node = graph_.node(id);
    if (node.opset < 7 || node.inputs.size() != 5) return std::nullopt;
    if (node.attributes.get_int("training_mode", 0) != 0) return std::nullopt;
    if (node.attributes.get_int("spatial", 1) != 1) return std::nullopt;
    for (std::size_t i = 1; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNoValue) return std::nullopt;
    }
    std::span<const float> values[5];
    for (std::size_t i = 1; i < 5; ++i) {
      if (!is_floats(node.inputs[i])) return std::nullopt;
      values[i] = graph_.value(node.inputs[i]).constant->values<float>();
      if (static_cast<std::int64_t>(values[i].size()) != channels) return std::nullopt;
    }
    const double epsilon = node.attributes.get_float("epsilon", 1e-5F);
    ChannelAffine affine(static_cast<std::size_t>(channels));
    for (std::size_t c = 0; c < affine.scale.size(); ++c) {
      affine.scale[c] = values[1][c] / std::sqrt(values[4][c] + epsilon);
      affine.shift[c] = values[2][c] - values[3][c] * affine.scale[c];
    }
    return affine;
  }

  /// Mul, Div, Add or Sub of a number for each channel, or of one for all.
  std::optional<ChannelAffine> arithmetic(NodeId id, NodeId next) const {
    const Node& node = graph_.node(next);
    const std::string& name = node.op_type;
    const bool is_known_op = name == "Mul" || name == "Div" || name == "Add" || name == "Sub";
    if (!is_known_op || node.opset < 7) return std::nullopt;
    const ValueId output = graph_.node(id).outputs[0];
    const bool is_ordered = name == "Div" || name == "Sub";
    if (is_ordered && node.inputs[0] != output) return std::nullopt;
    const ValueId other = other_input(node, output);
    const std::int64_t channels = channels_of(graph_.node(id));
    if (other == kNoValue || !is_per_channel(id, other, channels)) return std::nullopt;
    const auto values = graph_.value(other).constant->values<float>();
    ChannelAffine affine(static_cast<std::size_t>(channels));
    for (std::size_t c = 0; c < affine.scale.size(); ++c) {
      const double value = values[values.size() == 1 ? 0 : c];
      if (name == "Mul") affine.scale[c] = value;
      if (name == "Div") affine.scale[c] = 1 / value;
      if (name == "Add") affine.shift[c] = value;
      if (name == "Sub") affine.shift[c] = -value;
      if (!std::isfinite(affine.scale[c])) return std::nullopt;
    }
    return affine;
  }

  /// A constant that broadcasts along the channels of the convolution's output and widens nothing.
  bool is_per_channel(NodeId id, ValueId other, std::int64_t channels) const {
    if (!is_floats(other)) return false;
    const Tensor& constant = *graph_.value(other).constant;
    const int rank = graph_.value(graph_.node(id).inputs[1]).constant->rank();
    if (constant.rank() > rank) return false;
    for (int axis = 0; axis < constant.rank(); ++axis) {
      const bool is_channel = axis + rank - constant.rank() == 1;
      const Dim dim = constant.dim(axis);
      if (dim != 1 && !(is_channel && dim == channels)) return false;
    }
    return true;
  }

  Status scale_weight(NodeId id, const ChannelAffine& affine) {
    bool is_plain = true;
    for (const double scale : affine.scale) is_plain = is_plain && scale == 1;
    if (is_plain) return {};
    const Node& node = graph_.node(id);
    const Tensor& weight = *graph_.value(node.inputs[1]).constant;
    SDX_ASSIGN(Tensor scaled, clone(weight));
    const auto values = scaled.mutable_values<float>();
    const bool is_transposed = node.op_type == "ConvTranspose";
    // [M, C / g, ...], or transposed [C, M / g, ...].
    const auto rows = static_cast<std::size_t>(weight.dim(0));
    const auto columns = static_cast<std::size_t>(weight.dim(1));
    const auto groups = static_cast<std::size_t>(node.attributes.get_int("group", 1));
    const std::size_t taps = values.size() / rows / columns;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t row = i / (columns * taps);
      const std::size_t column = i / taps % columns;
      const std::size_t group = row / (rows / groups);
      const std::size_t channel = is_transposed ? group * columns + column : row;
      values[i] = static_cast<float>(values[i] * affine.scale[channel]);
    }
    replace_input(id, 1, std::move(scaled));
    return {};
  }

  Status set_bias(NodeId id, const ChannelAffine& affine) {
    const Node& node = graph_.node(id);
    std::vector<float> bias(affine.shift.size());
    const bool has_bias = !is_left_out(node, 2);
    for (std::size_t c = 0; c < bias.size(); ++c) {
      const double old = has_bias ? graph_.value(node.inputs[2]).constant->values<float>()[c] : 0.0;
      bias[c] = static_cast<float>(old * affine.scale[c] + affine.shift[c]);
    }
    SDX_ASSIGN(Tensor tensor, make_tensor<float>(Shape{static_cast<Dim>(bias.size())},
                                                 std::span<const float>(bias)));
    replace_input(id, 2, std::move(tensor));
    return {};
  }

  void replace_input(NodeId id, std::size_t index, Tensor constant) {
    std::vector<ValueId> inputs = graph_.node(id).inputs;
    if (inputs.size() <= index) inputs.resize(index + 1, kNoValue);
    const std::string name = inputs[index] == kNoValue ? graph_.node(id).name + "_bias"
                                                       : graph_.value(inputs[index]).name;
    inputs[index] = graph_.add_value(graph_.unique_name(name));
    graph_.set_constant(inputs[index], std::move(constant));
    graph_.set_inputs(id, std::move(inputs));
  }

  Graph& graph_;
};

}  // namespace

Status fold_channel_scale(Graph& graph, const PassOptions& options) {
  if (options.keeps_weights) return {};
  return for_each_graph(graph, [](Graph& part) { return ChannelScaleFolder(part).run(); });
}

}  // namespace sardonyx
