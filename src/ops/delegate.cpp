#include "ops/delegate.h"

#include "ops/evaluate.h"
#include "ops/schema.h"

namespace sardonyx {

namespace {

struct Made {
  Graph graph;
  Node node;
};

Made make_node(Delegate&& delegate, std::size_t input_count, std::size_t output_count) {
  Made made;
  made.node.op_type = std::move(delegate.op_type);
  made.node.opset = delegate.opset;
  made.node.attributes = std::move(delegate.attributes);
  for (std::size_t i = 0; i < input_count; ++i) {
    made.node.inputs.push_back(made.graph.add_value("input"));
  }
  for (std::size_t i = 0; i < output_count; ++i) {
    made.node.outputs.push_back(made.graph.add_value("output"));
  }
  return made;
}

}  // namespace

Result<std::vector<Datum>> evaluate_delegate(Delegate delegate, std::span<const Datum> inputs,
                                             std::size_t output_count) {
  SDX_ASSIGN(const OpSchema* schema, find_schema("", delegate.op_type, delegate.opset));
  Made made = make_node(std::move(delegate), inputs.size(), output_count);
  std::vector<const Datum*> operands;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_there = inputs[i].has_value();
    if (!is_there) made.node.inputs[i] = kNoValue;
    operands.push_back(is_there ? &inputs[i] : nullptr);
  }
  return evaluate_node(made.node, *schema, made.graph, operands);
}

Result<Tensor> evaluate_delegate(Delegate delegate, std::initializer_list<Tensor> inputs) {
  const std::vector<Datum> data(inputs.begin(), inputs.end());
  SDX_ASSIGN(std::vector<Datum> outputs, evaluate_delegate(std::move(delegate), data));
  return std::move(*outputs.at(0).tensor());
}

Result<Type> infer_delegate(Delegate delegate, std::initializer_list<Type> inputs) {
  SDX_ASSIGN(const OpSchema* schema, find_schema("", delegate.op_type, delegate.opset));
  const Made made = make_node(std::move(delegate), inputs.size(), 1);
  std::vector<const Type*> types;
  for (const Type& type : inputs) types.push_back(&type);
  const std::vector<const Tensor*> data(inputs.size(), nullptr);
  std::vector<Type> outputs(1);
  SDX_TRY(check_signature(made.node, *schema, &made.graph, types, outputs));
  InferContext context(made.node, *schema, &made.graph, {types, data, outputs});
  SDX_TRY(schema->infer(context));
  return std::move(outputs[0]);
}

Attributes attributes_named(const Attributes& from,
                            std::initializer_list<std::string_view> names) {
  Attributes result;
  for (const std::string_view name : names) {
    if (const Attribute* attribute = from.find(name)) result.set(std::string(name), *attribute);
  }
  return result;
}

}  // namespace sardonyx
