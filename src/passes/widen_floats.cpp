#include <algorithm>

#include "ir/element.h"
#include "ops/infer_context.h"
#include "ops/schema.h"
#include "passes/passes.h"

namespace sardonyx {

namespace {

/// Lookup tables below this are widened as a whole: that costs little.
constexpr std::size_t kSmall_bytes = std::size_t{64} << 10;

bool is_narrow(DType dtype) { return dtype == DType::Float16 || dtype == DType::BFloat16; }

bool is_narrow(const Value& value) { return value.type.is_tensor() && is_narrow(value.type.dtype); }

Type widened(Type type) {
  type.dtype = DType::Float32;
  return type;
}

class FloatWidener {
 public:
  FloatWidener(Graph& graph, bool keeps_weights)
      : graph_(graph), keeps_weights_(keeps_weights), wide_(graph.value_count(), kNoValue) {}

  Status run() {
    SDX_ASSIGN(const std::vector<NodeId> order, graph_.topological_order());
    for (const NodeId id : order) {
      SDX_ASSIGN(const bool is_better_wide, gains(graph_.node(id)));
      if (is_better_wide) SDX_TRY(widen(id));
    }
    narrow_results();
    return {};
  }

 private:
  /// Whether the node means the same in floats: its signature takes them, and then gives them
  /// wherever it gave narrow ones.
  Result<bool> gains(const Node& node) const {
    const bool has_narrow_input =
        std::any_of(node.inputs.begin(), node.inputs.end(),
                    [&](ValueId id) { return id != kNoValue && is_narrow(graph_.value(id)); });
    if (!has_narrow_input || node.custom != nullptr || !subgraphs(node).empty()) return false;
    if (node.op_type == "CastLike" || looks_up_rows(node)) return false;
    SDX_ASSIGN(const OpSchema* schema, find_schema(node.domain, node.op_type, node.opset));
    std::vector<Type> owned(node.inputs.size());
    std::vector<const Type*> types(node.inputs.size(), nullptr);
    std::vector<const Tensor*> data(node.inputs.size(), nullptr);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      const Value& value = graph_.value(node.inputs[i]);
      owned[i] = is_narrow(value) ? widened(value.type) : value.type;
      types[i] = &owned[i];
      if (!is_narrow(value) && value.constant) data[i] = &*value.constant;
    }
    std::vector<Type> outputs(node.outputs.size());
    if (!check_signature(node, *schema, &graph_, types, outputs).ok()) return false;
    InferContext context(node, *schema, &graph_, {types, data, outputs});
    if (!schema->infer(context).ok()) return false;
    return has_wide_outputs(node, outputs);
  }

  bool has_wide_outputs(const Node& node, std::span<const Type> outputs) const {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      const Value& value = graph_.value(node.outputs[i]);
      const DType expected = is_narrow(value) ? DType::Float32 : value.type.dtype;
      if (outputs[i].dtype != expected) return false;
    }
    return true;
  }

  /// Rows of a large table are widened after they are looked up.
  bool looks_up_rows(const Node& node) const {
    if (node.op_type != "Gather" && node.op_type != "GatherND") return false;
    const auto& table = graph_.value(node.inputs[0]).constant;
    return table && table->byte_size() >= kSmall_bytes;
  }

  Status widen(NodeId id) {
    const std::size_t input_count = graph_.node(id).inputs.size();
    for (std::size_t i = 0; i < input_count; ++i) {
      const ValueId input = graph_.node(id).inputs[i];
      if (input == kNoValue || !is_narrow(graph_.value(input))) continue;
      SDX_ASSIGN(const ValueId wide, wide_form(input));
      graph_.set_input(id, i, wide);
    }
    const std::size_t output_count = graph_.node(id).outputs.size();
    for (std::size_t i = 0; i < output_count; ++i) {
      const ValueId output = graph_.node(id).outputs[i];
      if (output == kNoValue || !is_narrow(graph_.value(output))) continue;
      wide_[output] = add_wide(output);
      graph_.replace_node_output(id, i, wide_[output]);
      results_.push_back(output);
    }
    return {};
  }

  ValueId add_wide(ValueId narrow) {
    const Value& value = graph_.value(narrow);
    return graph_.add_value(graph_.unique_name(value.name), widened(value.type));
  }

  /// The value as floats: what a widened node makes, a converted constant, or a cast.
  Result<ValueId> wide_form(ValueId narrow) {
    if (wide_[narrow] != kNoValue) return wide_[narrow];
    const ValueId wide = add_wide(narrow);
    wide_[narrow] = wide;
    const auto& constant = graph_.value(narrow).constant;
    if (constant && (!keeps_weights_ || constant->byte_size() <= kTinyWeight_bytes)) {
      SDX_ASSIGN(Tensor converted, to_dtype(*constant, DType::Float32));
      graph_.set_constant(wide, std::move(converted));
    } else {
      add_cast(narrow, wide, DType::Float32);
    }
    return wide;
  }

  /// Gives those who still want a narrow result one.
  void narrow_results() {
    for (const ValueId narrow : results_) {
      const Value& value = graph_.value(narrow);
      if (value.use_count == 0 && !value.is_output) continue;
      add_cast(wide_[narrow], narrow, value.type.dtype);
    }
  }

  void add_cast(ValueId from, ValueId to, DType dtype) {
    Node cast;
    cast.op_type = "Cast";
    cast.opset = 13;
    cast.attributes.set("to", Attribute(static_cast<std::int64_t>(dtype)));
    cast.inputs = {from};
    cast.outputs = {to};
    graph_.add_node(std::move(cast));
  }

  Graph& graph_;
  bool keeps_weights_;
  /// Per value of the graph as it was: its float form, once there is one.
  std::vector<ValueId> wide_;
  /// Narrow values that widened nodes made.
  std::vector<ValueId> results_;
};

}  // namespace

Status widen_floats(Graph& graph, const PassOptions& options) {
  return for_each_graph(graph, [&](Graph& part) {
    return FloatWidener(part, options.keeps_weights).run();
  });
}

}  // namespace sardonyx
