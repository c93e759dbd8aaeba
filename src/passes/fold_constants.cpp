#include "base/log.h"
#include "base/mapped_file.h"
#include "ops/evaluate.h"
#include "passes/passes.h"

namespace sardonyx {

namespace {

/// A fold may make a constant this much larger than its inputs without counting as expansion.
constexpr std::size_t kSmall_bytes = std::size_t{64} << 10;

/// Weights stay in their quantised form: integer kernels want them so.
bool keeps_weights_small(const Node& node) {
  return node.op_type == "DequantizeLinear" || node.op_type == "DequantizeBFP";
}

class Folder {
 public:
  Folder(Graph& graph, std::size_t& budget_bytes, std::size_t small_bytes, bool keeps_quantized)
      : graph_(graph),
        budget_bytes_(budget_bytes),
        small_bytes_(small_bytes),
        keeps_quantized_(keeps_quantized) {}

  Status run() {
    SDX_ASSIGN(const std::vector<NodeId> order, graph_.topological_order());
    for (const NodeId id : order) {
      if (can_fold(graph_.node(id))) fold(id);
    }
    return {};
  }

 private:
  bool can_fold(const Node& node) const {
    if (!node.implicit_inputs.empty() || !subgraphs(node).empty()) return false;
    if (node.custom != nullptr) return false;
    std::size_t input_bytes = 0;
    for (const ValueId input : node.inputs) {
      if (input == kNoValue) continue;
      const auto& constant = graph_.value(input).constant;
      if (!constant) return node.op_type == "Shape" && has_static_input(node);
      input_bytes += constant->byte_size();
    }
    return !keeps_quantized_ || !keeps_weights_small(node) || input_bytes < 256;
  }

  bool has_static_input(const Node& node) const {
    const Type& type = graph_.value(node.inputs[0]).type;
    return type.is_tensor() && type.shape && type.shape->is_static();
  }

  /// A Constant's tensor is there already: its node goes, whatever its size.
  bool fold_constant_node(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op_type != "Constant" || !node.domain.empty()) return false;
    const Tensor* value = node.attributes.get_if<Tensor>("value");
    if (value == nullptr) return false;
    const Tensor kept = *value;
    const ValueId output = node.outputs[0];
    graph_.remove_node(id);
    if (output != kNoValue) graph_.set_constant(output, kept);
    return true;
  }

  void fold(NodeId id) {
    if (fold_constant_node(id)) return;
    const Node& node = graph_.node(id);
    const auto schema = find_schema(node.domain, node.op_type, node.opset);
    if (!schema.ok() || (*schema)->has(kNondeterministic)) return;
    std::vector<Datum> data(node.inputs.size());
    std::vector<const Datum*> inputs(node.inputs.size(), nullptr);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      const Value& value = graph_.value(node.inputs[i]);
      // Shape looks at the shape only: its elements need not be there.
      data[i] = value.constant ? *value.constant
                               : Tensor::view(value.type.dtype, *value.type.shape,
                                              static_cast<void*>(nullptr));
      inputs[i] = &data[i];
    }
    auto results = evaluate_node(node, **schema, graph_, inputs, small_bytes_ + budget_bytes_);
    // A node that fails now fails when it runs, if it ever does; then the message names it.
    if (!results.ok()) return;
    for (const Datum& result : *results) {
      if (result.has_value() && result.tensor() == nullptr) return;
    }
    store(id, *results);
  }

  void store(NodeId id, const std::vector<Datum>& results) {
    const std::vector<ValueId> inputs = graph_.node(id).inputs;
    const std::vector<ValueId> outputs = graph_.node(id).outputs;
    graph_.remove_node(id);
    for (const ValueId input : inputs) release(input);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Tensor* tensor = results[i].tensor();
      if (outputs[i] == kNoValue || tensor == nullptr) continue;
      graph_.set_constant(outputs[i], *tensor);
      const std::size_t bytes = tensor->byte_size();
      if (bytes > small_bytes_) budget_bytes_ -= std::min(budget_bytes_, bytes);
    }
  }

  /// Lets go of elements that nobody needs now, so that the next fold takes their memory.
  void release(ValueId id) {
    if (id == kNoValue) return;
    Value& value = graph_.value(id);
    if (value.use_count != 0 || value.is_output || !value.constant) return;
    const Tensor& tensor = *value.constant;
    // Pages of a file that were read for this fold alone need not count as this process's.
    if (tensor.byte_size() > kSmall_bytes && MappedFile::containing(tensor.data()) != nullptr) {
      MappedFile::release({tensor.data(), tensor.byte_size()});
    }
    value.constant.reset();
  }

  Graph& graph_;
  std::size_t& budget_bytes_;
  std::size_t small_bytes_;
  bool keeps_quantized_;
};

}  // namespace

namespace {

Status fold(Graph& graph, const PassOptions& options, bool keeps_quantized) {
  std::size_t budget_bytes = options.keeps_weights ? 0 : options.folded_bytes_max;
  const std::size_t small_bytes = options.keeps_weights ? kTinyWeight_bytes : kSmall_bytes;
  return for_each_graph(graph, [&](Graph& part) {
    return Folder(part, budget_bytes, small_bytes, keeps_quantized).run();
  });
}

}  // namespace

Status fold_constants(Graph& graph, const PassOptions& options) {
  return fold(graph, options, true);
}

Status fold_weights(Graph& graph, const PassOptions& options) {
  return fold(graph, options, false);
}

}  // namespace sardonyx
