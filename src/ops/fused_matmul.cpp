#include <algorithm>

#include "ir/element.h"
#include "ops/eval_context.h"
#include "ops/evaluate.h"
#include "ops/families.h"
#include "ops/fused_activation.h"
#include "ops/infer_context.h"

namespace sardonyx {

namespace {

/// ai.sardonyx:MatMul, which passes make: activation(alpha * A B + bias + residual), where A or B
/// may be transposed, bias is [N] and residual has the shape of the result.
Node plain_product(const Node& node) {
  Node product;
  product.domain = "com.microsoft";
  product.op_type = "FusedMatMul";
  product.opset = 1;
  for (const char* name : {"alpha", "transA", "transB"}) {
    if (const Attribute* attribute = node.attributes.find(name)) {
      product.attributes.set(name, *attribute);
    }
  }
  return product;
}

Status infer_fused(InferContext& context) {
  if (context.shape(0) == nullptr || context.shape(1) == nullptr) return {};
  SDX_ASSIGN(const OpSchema* schema, find_schema("com.microsoft", "FusedMatMul", 1));
  Node product = plain_product(context.node());
  product.inputs.assign(context.node().inputs.begin(), context.node().inputs.begin() + 2);
  product.outputs = context.node().outputs;
  const Type* types[] = {&context.type(0), &context.type(1)};
  const Tensor* data[] = {nullptr, nullptr};
  Type output = Type::tensor(context.output_dtype(0));
  InferContext plain(product, *schema, nullptr, {types, data, {&output, 1}});
  SDX_TRY(schema->infer(plain));
  if (output.shape) context.set_shape(0, *output.shape);
  return {};
}

Status evaluate_fused(EvalContext& context) {
  SDX_ASSIGN(const OpSchema* schema, find_schema("com.microsoft", "FusedMatMul", 1));
  SDX_ASSIGN(const Activation activation, Activation::of_node(context.attributes()));
  Graph graph;
  Node product = plain_product(context.node());
  product.inputs = {graph.add_value("A"), graph.add_value("B")};
  product.outputs = {graph.add_value("Y")};
  const Datum* inputs[] = {context.input(0), context.input(1)};
  SDX_ASSIGN(auto results, evaluate_node(product, *schema, graph, inputs));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const auto sum = results[0].tensor()->values<float>();
  const auto target = y->mutable_values<float>();
  const Tensor* bias = context.tensor_or_null(2);
  const Tensor* residual = context.tensor_or_null(3);
  const std::size_t columns = bias != nullptr ? bias->values<float>().size() : 1;
  for (std::size_t i = 0; i < target.size(); ++i) {
    target[i] = sum[i];
    if (bias != nullptr) target[i] += bias->values<float>()[i % columns];
    if (residual != nullptr) target[i] += residual->values<float>()[i];
  }
  activation.apply(target.data(), static_cast<std::int64_t>(target.size()));
  return {};
}

constexpr OpSchema kRows[] = {
    {"ai.sardonyx",
     "MatMul",
     1,
     {"TTtt>T", set_of(DType::Float32)},
     "alpha:f transA:i transB:i activation:s activation_params:fs",
     infer_fused,
     evaluate_fused},
};

}  // namespace

std::span<const OpSchema> fused_matmul_schemas() { return kRows; }

}  // namespace sardonyx
