#include <algorithm>

#include "ir/element.h"
#include "ops/eval_context.h"
#include "ops/evaluate.h"
#include "ops/families.h"
#include "ops/infer_context.h"

namespace sardonyx {

namespace {

/// Operators that passes make: those of com.microsoft with a Relu before the result is stored
/// (activation "Relu"), which leaves nothing below the output's zero point (input 7).
Node plain_node(const Node& node) {
  Node plain = node;
  plain.domain = "com.microsoft";
  plain.opset = 1;
  plain.attributes.erase("activation");
  return plain;
}

Status infer(InferContext& context) {
  SDX_ASSIGN(const OpSchema* schema, find_schema("com.microsoft", context.node().op_type, 1));
  return schema->infer(context);
}

Status evaluate(EvalContext& context) {
  SDX_ASSIGN(const OpSchema* schema, find_schema("com.microsoft", context.node().op_type, 1));
  Graph graph;
  Node plain = plain_node(context.node());
  std::vector<const Datum*> inputs;
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    inputs.push_back(context.input(i));
    plain.inputs[i] = inputs.back() != nullptr ? graph.add_value("input") : kNoValue;
  }
  plain.outputs = {graph.add_value("output")};
  SDX_ASSIGN(auto results, evaluate_node(plain, *schema, graph, inputs));
  const Tensor& result = *results[0].tensor();
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const bool has_relu = context.attributes().get_string("activation", "") == "Relu";
  const Tensor* zero = context.tensor_or_null(7);
  const std::int64_t low = zero != nullptr ? read_int(zero->dtype(), zero->data(), 0) : 0;
  for (std::int64_t i = 0; i < y->element_count(); ++i) {
    const std::int64_t value = read_int(result.dtype(), result.data(), i);
    write_int(y->dtype(), y->mutable_data(), i, has_relu ? std::max(value, low) : value);
  }
  return {};
}

constexpr DTypeSet k8Bit = set_of(DType::Int8, DType::UInt8);

constexpr OpSchema kRows[] = {
    {"ai.sardonyx", "QLinearAdd", 1, {"TFtTFtFt>T", k8Bit}, "activation:s", infer, evaluate},
    {"ai.sardonyx",
     "QLinearConv",
     1,
     {"TFtUFuFvw>V", k8Bit, k8Bit, k8Bit, set_of(DType::Int32)},
     "auto_pad:s dilations:is group:i kernel_shape:is pads:is strides:is channels_last:i "
     "activation:s",
     infer,
     evaluate},
};

}  // namespace

std::span<const OpSchema> quantized_conv_schemas() { return kRows; }

}  // namespace sardonyx
