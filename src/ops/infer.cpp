#include "ops/infer.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/log.h"
#include "ir/custom_operator.h"
#include "ops/infer_context.h"
#include "ops/schema.h"

namespace sardonyx {

namespace {

Status infer_graph(Graph& graph);

/// A declaration fills in what inference left open.
void merge(Type& inferred, const Type& declared) {
  if (inferred.kind == Type::Kind::Unknown) {
    inferred = declared;
    return;
  }
  if (inferred.kind != Type::Kind::Tensor || declared.kind != Type::Kind::Tensor) return;
  if (inferred.dtype == DType::Undefined) inferred.dtype = declared.dtype;
  if (!inferred.shape) {
    inferred.shape = declared.shape;
  } else if (declared.shape && declared.shape->rank() == inferred.shape->rank()) {
    for (int i = 0; i < inferred.shape->rank(); ++i) {
      if ((*inferred.shape)[i] == kUnknownDim) (*inferred.shape)[i] = (*declared.shape)[i];
    }
  }
}

void note_contradiction(const Value& value, const Type& inferred) {
  if (!value.is_output || !inferred.shape || !value.type.shape) return;
  const Shape& declared = *value.type.shape;
  bool fits = declared.rank() == inferred.shape->rank();
  for (int i = 0; fits && i < declared.rank(); ++i) {
    fits = !is_known(declared[i]) || !is_known((*inferred.shape)[i]) ||
           declared[i] == (*inferred.shape)[i];
  }
  if (!fits) {
    log(Severity::Warning, "output '{}' is declared with shape {}, but has shape {}", value.name,
        declared.to_string(), inferred.shape->to_string());
  }
}

/// Puts the outer values' types and constants into the captures, and `inputs` into the inputs.
void enter_subgraph(Graph& subgraph, const Graph& outer, std::span<const Type> inputs) {
  for (const Capture& captured : subgraph.captures()) {
    const Value& source = outer.value(captured.outer);
    subgraph.value(captured.inner).type = source.type;
    subgraph.value(captured.inner).constant = source.constant;
  }
  for (std::size_t i = 0; i < inputs.size() && i < subgraph.inputs().size(); ++i) {
    Value& input = subgraph.value(subgraph.inputs()[i]);
    Type merged = inputs[i];
    merge(merged, input.type);
    input.type = std::move(merged);
  }
}

/// Whether the operator always has that output.
bool is_required_output(const Signature& signature, std::size_t position) {
  const std::string_view text = signature.text;
  const std::string_view letters = text.substr(text.find('>') + 1);
  const bool is_variadic = letters.ends_with('*');
  const std::size_t count = letters.size() - (is_variadic ? 1 : 0);
  if (count == 0 || (position >= count && !is_variadic)) return false;
  const char letter = letters[std::min(position, count - 1)];
  return std::isupper(static_cast<unsigned char>(letter)) != 0;
}

/// Gives a value to required outputs that the model leaves without a name: kernels write them
/// whether anybody uses them or not.
void complete_outputs(Graph& graph, NodeId id, const OpSchema& schema) {
  for (std::size_t i = 0; i < graph.node(id).outputs.size(); ++i) {
    if (graph.node(id).outputs[i] != kNoValue || !is_required_output(schema.signature, i)) continue;
    graph.replace_node_output(id, i, graph.add_value(graph.unique_name("unused")));
  }
}

void store_outputs(Graph& graph, const Node& node, std::span<Type> outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    Value& value = graph.value(node.outputs[i]);
    note_contradiction(value, outputs[i]);
    merge(outputs[i], value.type);
    value.type = std::move(outputs[i]);
  }
}

Status infer_node(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const OpSchema* schema = nullptr;
  if (node.custom == nullptr) {
    SDX_ASSIGN(schema, find_schema(node.domain, node.op_type, node.opset));
    complete_outputs(graph, id, *schema);
  }
  std::vector<const Type*> types(node.inputs.size(), nullptr);
  std::vector<const Tensor*> data(node.inputs.size(), nullptr);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const Value& value = graph.value(node.inputs[i]);
    types[i] = &value.type;
    data[i] = value.constant ? &*value.constant : nullptr;
  }
  std::vector<Type> outputs(node.outputs.size());
  if (node.custom != nullptr) {
    SDX_TRY(node.custom->infer(graph, node, types, outputs));
    store_outputs(graph, node, outputs);
    return {};
  }
  SDX_TRY(check_signature(node, *schema, &graph, types, outputs));
  const auto infer_subgraph = [&](const Graph& subgraph,
                                  std::span<const Type> inputs) -> Result<std::vector<Type>> {
    auto& inner = const_cast<Graph&>(subgraph);
    enter_subgraph(inner, graph, inputs);
    SDX_TRY(infer_graph(inner));
    std::vector<Type> results;
    for (const ValueId output : inner.outputs()) results.push_back(inner.value(output).type);
    return results;
  };
  const SubgraphInferFn subgraph_fn(infer_subgraph);
  InferContext context(node, *schema, &graph, {types, data, outputs}, &subgraph_fn);
  SDX_TRY(schema->infer(context));
  store_outputs(graph, node, outputs);
  return {};
}

Status infer_graph(Graph& graph) {
  SDX_ASSIGN(const std::vector<NodeId> order, graph.topological_order());
  for (const NodeId id : order) {
    Status status = infer_node(graph, id);
    if (!status.ok()) {
      return std::move(status).with("checking " + graph.node(id).describe(graph));
    }
  }
  return {};
}

}  // namespace

Status infer_types(Graph& graph) { return infer_graph(graph); }

}  // namespace sardonyx
