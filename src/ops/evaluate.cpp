#include "ops/evaluate.h"

#include "ops/empty_outputs.h"
#include "ops/eval_context.h"
#include "ops/infer_context.h"

namespace sardonyx {

namespace {

/// Runs the row's InferFn on real inputs, so that allocate(i) knows the shapes.
Result<std::vector<Type>> infer_outputs(const Node& node, const OpSchema& schema,
                                        const Graph& graph, std::span<const Datum* const> inputs) {
  std::vector<Type> owned(inputs.size());
  std::vector<const Type*> types(inputs.size(), nullptr);
  std::vector<const Tensor*> data(inputs.size(), nullptr);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    owned[i] = inputs[i]->type();
    types[i] = &owned[i];
    data[i] = inputs[i]->tensor();
  }
  std::vector<Type> outputs(node.outputs.size());
  SDX_TRY(check_signature(node, schema, &graph, types, outputs));
  InferContext context(node, schema, &graph, {types, data, outputs});
  SDX_TRY(schema.infer(context));
  return outputs;
}

/// Makes the outputs when that says all: they are tensors without elements.
Result<bool> make_empty(const Node& node, const OpSchema& schema, std::span<const Type> types,
                        std::span<Datum> outputs) {
  if (!has_no_elements(node, schema, types)) return false;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    SDX_ASSIGN(Tensor empty, Tensor::allocate(types[i].dtype, *types[i].shape));
    outputs[i] = std::move(empty);
  }
  return true;
}

class NodeContext : public EvalContext {
 public:
  NodeContext(const Node& node, const OpSchema& schema, Operands operands)
      : EvalContext(node, schema, operands) {}

  Result<std::vector<Datum>> run_subgraph(std::string_view attribute,
                                          std::span<const Datum>) override {
    return failure(Code::Internal, "no evaluator for the subgraph in '{}'", attribute);
  }
  bool cancelled() const override { return false; }
  std::mt19937_64& random() override { return random_; }

 protected:
  Result<Tensor> make_tensor(std::size_t, DType dtype, const Shape& shape) override {
    return Tensor::allocate(dtype, shape);
  }
  std::mt19937_64 random_;
};

}  // namespace

/// Adds subgraphs and cancellation to the plain context.
class Evaluator::Context final : public NodeContext {
 public:
  Context(const Node& node, const OpSchema& schema, Operands operands, const Evaluator& evaluator,
          const std::vector<Datum>& values, const EvaluateOptions& options)
      : NodeContext(node, schema, operands),
        evaluator_(evaluator),
        values_(values),
        options_(options) {
    random_.seed(options.seed);
  }

  Result<std::vector<Datum>> run_subgraph(std::string_view attribute,
                                          std::span<const Datum> inputs) override {
    const auto* graph = attributes().get_if<std::shared_ptr<Graph>>(attribute);
    if (graph == nullptr) {
      return failure(Code::InvalidModel, "attribute '{}' holds no graph", attribute);
    }
    std::vector<Datum> captured;
    for (const Capture& capture : (*graph)->captures()) captured.push_back(values_[capture.outer]);
    return evaluator_.subgraphs_.at(graph->get())->run(inputs, captured, options_);
  }

  bool cancelled() const override {
    return options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed);
  }

 private:
  const Evaluator& evaluator_;
  const std::vector<Datum>& values_;
  const EvaluateOptions& options_;
};

Result<Evaluator> Evaluator::create(const Graph& graph) {
  Evaluator evaluator;
  evaluator.graph_ = &graph;
  SDX_ASSIGN(const std::vector<NodeId> order, graph.topological_order());
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    auto schema = find_schema(node.domain, node.op_type, node.opset);
    if (!schema.ok()) {
      return std::move(schema).take_status().with("checking " + node.describe(graph));
    }
    evaluator.steps_.push_back({id, *schema});
    for (const Graph* subgraph : sardonyx::subgraphs(node)) {
      SDX_ASSIGN(Evaluator inner, create(*subgraph));
      evaluator.subgraphs_.emplace(subgraph, std::make_unique<Evaluator>(std::move(inner)));
    }
  }
  return evaluator;
}

Result<std::vector<Datum>> Evaluator::run(std::span<const Datum> inputs,
                                          std::span<const Datum> captured,
                                          const EvaluateOptions& options) const {
  std::vector<Datum> values(graph_->value_count());
  for (ValueId id = 0; id < values.size(); ++id) {
    if (graph_->value(id).constant) {
      SDX_ASSIGN(Tensor constant, aligned(*graph_->value(id).constant));
      values[id] = std::move(constant);
    }
    if (graph_->value(id).sparse_constant) values[id] = graph_->value(id).sparse_constant;
  }
  for (std::size_t i = 0; i < graph_->captures().size(); ++i) {
    values[graph_->captures()[i].inner] = captured[i];
  }
  if (inputs.size() != graph_->inputs().size()) {
    return failure(Code::InvalidArgument, "expected {} inputs, found {}", graph_->inputs().size(),
                   inputs.size());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId id = graph_->inputs()[i];
    const auto& fallback = graph_->value(id).default_value;
    values[id] = !inputs[i].has_value() && fallback ? Datum(*fallback) : inputs[i];
  }

  for (const Step& step : steps_) {
    const Node& node = graph_->node(step.node);
    std::vector<const Datum*> operands;
    for (const ValueId input : node.inputs) {
      operands.push_back(input == kNoValue ? nullptr : &values[input]);
    }
    auto types = infer_outputs(node, *step.schema, *graph_, operands);
    std::vector<Datum> outputs(node.outputs.size());
    Status status = types.ok() ? Status() : std::move(types).take_status();
    if (status.ok()) {
      SDX_ASSIGN(const bool is_done, make_empty(node, *step.schema, *types, outputs));
      Context context(node, *step.schema, {operands, *types, outputs}, *this, values, options);
      if (!is_done) status = step.schema->evaluate(context);
    }
    if (!status.ok()) return std::move(status).with("running " + node.describe(*graph_));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (node.outputs[i] != kNoValue) values[node.outputs[i]] = std::move(outputs[i]);
    }
  }
  std::vector<Datum> results;
  for (const ValueId output : graph_->outputs()) results.push_back(values[output]);
  return results;
}

Result<std::vector<Datum>> evaluate_node(const Node& node, const OpSchema& schema,
                                         const Graph& graph, std::span<const Datum* const> inputs,
                                         std::size_t bytes_max) {
  std::vector<Datum> copies(inputs.size());
  std::vector<const Datum*> operands(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor* tensor = inputs[i] != nullptr ? inputs[i]->tensor() : nullptr;
    if (tensor == nullptr || tensor->is_aligned()) continue;
    SDX_ASSIGN(Tensor copy, clone(*tensor));
    copies[i] = std::move(copy);
    operands[i] = &copies[i];
  }
  SDX_ASSIGN(const std::vector<Type> types, infer_outputs(node, schema, graph, operands));
  std::size_t total_bytes = 0;
  for (const Type& type : types) {
    if (!type.is_tensor() || !type.shape || !type.shape->is_static()) continue;
    const auto count = type.shape->element_count();
    const auto bytes = count ? dtype_bytes(type.dtype, *count) : std::nullopt;
    if (!bytes || *bytes > bytes_max - total_bytes) {
      return failure(Code::OutOfMemory, "the result of shape {} is larger than {} bytes",
                     type.shape->to_string(), bytes_max);
    }
    total_bytes += *bytes;
  }
  std::vector<Datum> outputs(node.outputs.size());
  SDX_ASSIGN(const bool is_done, make_empty(node, schema, types, outputs));
  if (is_done) return outputs;
  NodeContext context(node, schema, {operands, types, outputs});
  SDX_TRY(schema.evaluate(context));
  return outputs;
}

}  // namespace sardonyx
