#include <algorithm>

#include "ops/eval_context.h"
#include "ops/evaluate.h"
#include "ops/families.h"
#include "ops/infer_context.h"

namespace sardonyx {

namespace {

/// Operators of the domain "ai.sardonyx", which passes make: those of ONNX with the channels of
/// input 0 and output 0 at the end instead of at axis 1. Weights keep their order.
constexpr std::int64_t kOnnxOpset = 22;

Shape channels_first(const Shape& shape) {
  Shape result = shape;
  if (shape.rank() < 3) return result;
  result[1] = shape[shape.rank() - 1];
  for (int axis = 2; axis < shape.rank(); ++axis) result[axis] = shape[axis - 1];
  return result;
}

Shape channels_last(const Shape& shape) {
  Shape result = shape;
  if (shape.rank() < 3) return result;
  for (int axis = 2; axis < shape.rank(); ++axis) result[axis - 1] = shape[axis];
  result[shape.rank() - 1] = shape[1];
  return result;
}

/// The ONNX node of the same name and attributes.
Node standard_node(const Node& node) {
  Node standard = node;
  standard.domain.clear();
  standard.opset = kOnnxOpset;
  return standard;
}

Status infer_channels_last(InferContext& context) {
  if (context.shape(0) == nullptr) return {};
  SDX_ASSIGN(const OpSchema* schema, find_schema("", context.node().op_type, kOnnxOpset));
  const Type first = Type::tensor(context.dtype(0), channels_first(*context.shape(0)));
  std::vector<const Type*> types;
  for (std::size_t i = 0; i < context.input_count(); ++i) types.push_back(&context.type(i));
  types[0] = &first;
  const std::vector<const Tensor*> data(types.size(), nullptr);
  std::vector<Type> outputs(context.output_count());
  outputs[0] = Type::tensor(context.output_dtype(0));
  InferContext standard(context.node(), *schema, nullptr, {types, data, outputs});
  SDX_TRY(schema->infer(standard));
  if (outputs[0].shape) context.set_shape(0, channels_last(*outputs[0].shape));
  return {};
}

Result<Tensor> permuted(const Tensor& x, bool to_last) {
  const int rank = x.rank();
  Node node;
  node.op_type = "Transpose";
  std::vector<std::int64_t> axes{0};
  if (to_last) {
    for (int axis = 2; axis < rank; ++axis) axes.push_back(axis);
    axes.push_back(1);
  } else {
    axes.push_back(rank - 1);
    for (int axis = 1; axis < rank - 1; ++axis) axes.push_back(axis);
  }
  node.attributes.set("perm", axes);
  Graph graph;
  node.inputs = {graph.add_value("x")};
  node.outputs = {graph.add_value("y")};
  SDX_ASSIGN(const OpSchema* schema, find_schema("", "Transpose", kOnnxOpset));
  const Datum datum(x);
  const Datum* inputs[] = {&datum};
  SDX_ASSIGN(auto results, evaluate_node(node, *schema, graph, inputs));
  return *results[0].tensor();
}

Status evaluate_channels_last(EvalContext& context) {
  SDX_ASSIGN(const OpSchema* schema, find_schema("", context.node().op_type, kOnnxOpset));
  SDX_ASSIGN(Tensor first, permuted(context.tensor(0), false));
  const Datum x(std::move(first));
  Graph graph;
  Node node = standard_node(context.node());
  std::vector<const Datum*> inputs;
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    inputs.push_back(i == 0 ? &x : context.input(i));
    node.inputs[i] = inputs.back() != nullptr ? graph.add_value("input") : kNoValue;
  }
  node.outputs = {graph.add_value("output")};
  SDX_ASSIGN(auto results, evaluate_node(node, *schema, graph, inputs));
  SDX_ASSIGN(Tensor last, permuted(*results[0].tensor(), true));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  std::copy(last.data(), last.data() + last.byte_size(), y->mutable_data());
  return {};
}

constexpr const char* kPool =
    "kernel_shape:is strides:is pads:is dilations:is auto_pad:s ceil_mode:i count_include_pad:i "
    "storage_order:i p:i";

constexpr OpSchema kRows[] = {
    {"ai.sardonyx",
     "ConvTranspose",
     1,
     {"TTt>T", kFloats},
     "kernel_shape:is strides:is pads:is dilations:is auto_pad:s group:i output_padding:is "
     "output_shape:is",
     infer_channels_last,
     evaluate_channels_last},
    {"ai.sardonyx",
     "MaxPool",
     1,
     {"T>T", kNumeric},
     kPool,
     infer_channels_last,
     evaluate_channels_last},
    {"ai.sardonyx",
     "AveragePool",
     1,
     {"T>T", kFloats},
     kPool,
     infer_channels_last,
     evaluate_channels_last},
    {"ai.sardonyx",
     "GlobalAveragePool",
     1,
     {"T>T", kFloats},
     "",
     infer_channels_last,
     evaluate_channels_last},
    {"ai.sardonyx",
     "GlobalMaxPool",
     1,
     {"T>T", kFloats},
     "",
     infer_channels_last,
     evaluate_channels_last},
};

}  // namespace

std::span<const OpSchema> channels_last_schemas() { return kRows; }

}  // namespace sardonyx
