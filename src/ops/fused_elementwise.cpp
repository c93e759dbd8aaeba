#include <array>
#include <cmath>
#include <vector>

#include "ir/element.h"
#include "ops/activations.h"
#include "ops/delegate.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace sardonyx {

namespace {

struct Add {
  template <typename T>
  static T apply(T a, T b) {
    return a + b;
  }
};

/// Inputs 1 to `last` have to broadcast to the first, whose shape is the output's.
Status infer_as_first(InferContext& context, std::size_t last) {
  const Shape* x = context.shape(0);
  if (x == nullptr) return {};
  for (std::size_t i = 1; i <= std::min(last, context.input_count() - 1); ++i) {
    const Shape* other = context.shape(i);
    if (other == nullptr) continue;
    const auto result = broadcast(*x, *other);
    if (!result || result->rank() != x->rank() || (x->is_static() && *result != *x)) {
      return context.error("'{}' of shape {} does not broadcast to {}", context.input_name(i),
                           other->to_string(), x->to_string());
    }
  }
  context.set_shape(0, *x);
  return {};
}

Status infer_as_first(InferContext& context) {
  return infer_as_first(context, context.input_count());
}

DType compute_type(DType dtype) {
  return dtype == DType::Float64 ? DType::Float64 : DType::Float32;
}

/// x + bias + ... as Float32 or Float64, in memory of its own.
Result<Tensor> sum_of(const Tensor& x, std::initializer_list<const Tensor*> terms) {
  const DType compute = compute_type(x.dtype());
  SDX_ASSIGN(Tensor sum, Tensor::allocate(compute, x.shape()));
  convert_elements(x.dtype(), x.data(), compute, sum.mutable_data(), x.element_count());
  for (const Tensor* term : terms) {
    if (term == nullptr) continue;
    SDX_ASSIGN(const Tensor wide, to_dtype(*term, compute));
    if (broadcast(x.shape(), wide.shape()) != x.shape()) {
      return failure(Code::Runtime, "a term of shape {} does not broadcast to {}",
                     wide.shape().to_string(), x.shape().to_string());
    }
    broadcast_run(compute == DType::Float64 ? run_binary<Add, double> : run_binary<Add, float>, sum,
                  wide, sum);
  }
  return sum;
}

Status write_as_output(EvalContext& context, const Tensor& values) {
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  convert_elements(values.dtype(), values.data(), y->dtype(), y->mutable_data(),
                   values.element_count());
  return {};
}

/// y = f(x + bias), the bias being optional.
template <typename F>
Status map_sum(EvalContext& context, const F& f) {
  SDX_ASSIGN(Tensor sum, sum_of(context.tensor(0), {context.tensor_or_null(1)}));
  if (sum.dtype() == DType::Float64) {
    for (double& value : sum.mutable_values<double>()) value = f(value);
  } else {
    for (float& value : sum.mutable_values<float>()) value = f(value);
  }
  return write_as_output(context, sum);
}

Status evaluate_gelu(EvalContext& context) {
  return map_sum(context, [](auto x) { return gelu(x); });
}

Status evaluate_fast_gelu(EvalContext& context) {
  return map_sum(context, [](auto x) { return gelu_tanh(x); });
}

Status evaluate_quick_gelu(EvalContext& context) {
  const float alpha = context.attributes().get_float("alpha", 1.702F);
  return map_sum(context, [alpha](auto x) {
    return x * sigmoid(static_cast<decltype(x)>(alpha) * x);
  });
}

Status evaluate_bias_add(EvalContext& context) {
  SDX_ASSIGN(const Tensor sum, sum_of(context.tensor(0), {&context.tensor(1), &context.tensor(2)}));
  return write_as_output(context, sum);
}

Status infer_bias_split_gelu(InferContext& context) {
  SDX_TRY(infer_as_first(context));
  const Shape* x = context.shape(0);
  if (x == nullptr) return {};
  const int last = x->rank() - 1;
  if (last < 0 || (is_known((*x)[last]) && (*x)[last] % 2 != 0)) {
    return context.error("'{}' of shape {} has no last axis of even size", context.input_name(0),
                         x->to_string());
  }
  Shape shape = *x;
  shape[last] = is_known(shape[last]) ? shape[last] / 2 : kUnknownDim;
  context.set_shape(0, shape);
  return {};
}

/// left * gelu(right), the halves of each row.
Status evaluate_bias_split_gelu(EvalContext& context) {
  SDX_ASSIGN(Tensor sum, sum_of(context.tensor(0), {&context.tensor(1)}));
  SDX_ASSIGN(sum, to_dtype(sum, DType::Float32));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const std::int64_t half = y->dim(y->rank() - 1);
  const float* row = sum.values<float>().data();
  std::vector<float> results(static_cast<std::size_t>(half));
  for (std::int64_t start = 0; start < y->element_count(); start += half, row += 2 * half) {
    for (std::int64_t i = 0; i < half; ++i) {
      results[static_cast<std::size_t>(i)] = row[i] * gelu(row[half + i]);
    }
    store_reals(y->dtype(), y->mutable_data(), start, half, results.data());
  }
  return {};
}

Status infer_bias_softmax(InferContext& context) {
  SDX_TRY(infer_as_first(context));
  const Shape* x = context.shape(0);
  if (x == nullptr) return {};
  Delegate softmax{"Softmax", 11, attributes_named(context.attributes(), {"axis"})};
  return infer_delegate(std::move(softmax), {Type::tensor(DType::Float32, *x)}).take_status();
}

Status evaluate_bias_softmax(EvalContext& context) {
  SDX_ASSIGN(Tensor sum, sum_of(context.tensor(0), {&context.tensor(1)}));
  Delegate softmax{"Softmax", 11, attributes_named(context.attributes(), {"axis"})};
  SDX_ASSIGN(const Tensor result, evaluate_delegate(std::move(softmax), {sum}));
  return write_as_output(context, result);
}

Status infer_bias_dropout(InferContext& context) {
  SDX_TRY(infer_as_first(context, 2));
  const Shape* x = context.shape(0);
  if (x == nullptr) return {};
  context.set_shape(1, *x);
  return {};
}

Datum input_or_nothing(const EvalContext& context, std::size_t i) {
  return context.has_input(i) ? *context.input(i) : Datum();
}

/// dropout(x + bias) + residual.
Status evaluate_bias_dropout(EvalContext& context) {
  SDX_ASSIGN(Tensor sum, sum_of(context.tensor(0), {&context.tensor(1)}));
  Delegate dropout{"Dropout", 13, attributes_named(context.attributes(), {"seed"})};
  const std::array<Datum, 3> inputs = {Datum(sum), input_or_nothing(context, 3),
                                       input_or_nothing(context, 4)};
  SDX_ASSIGN(std::vector<Datum> outputs, evaluate_delegate(std::move(dropout), inputs, 2));
  context.set_output(1, std::move(outputs[1]));
  SDX_ASSIGN(const Tensor result, sum_of(*outputs[0].tensor(), {context.tensor_or_null(2)}));
  return write_as_output(context, result);
}

constexpr OpSchema kRows[] = {
    {"com.microsoft", "BiasAdd", 1, {"TTT>T", kFloatsBf16}, "", infer_as_first,
     evaluate_bias_add},
    {"com.microsoft", "BiasDropout", 1, {"TTtub>Tb", kFloatsBf16, kFloatsBf16}, "seed:i",
     infer_bias_dropout, evaluate_bias_dropout, kNondeterministic},
    {"com.microsoft", "BiasGelu", 1, {"TT>T", kFloatsBf16}, "", infer_as_first, evaluate_gelu},
    {"com.microsoft", "BiasSoftmax", 1, {"TT>T", kFloatsBf16}, "axis:i is_inner_broadcast:i!",
     infer_bias_softmax, evaluate_bias_softmax},
    {"com.microsoft", "BiasSplitGelu", 1, {"TT>T", kFloatsBf16}, "", infer_bias_split_gelu,
     evaluate_bias_split_gelu},
    {"com.microsoft", "FastGelu", 1, {"Tt>T", kFloatsBf16}, "", infer_as_first,
     evaluate_fast_gelu},
    {"com.microsoft", "Gelu", 1, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_gelu},
    {"com.microsoft", "QuickGelu", 1, {"T>T", kFloatsBf16}, "alpha:f", infer_same_shape,
     evaluate_quick_gelu},
};

}  // namespace

std::span<const OpSchema> fused_elementwise_schemas() { return kRows; }

}  // namespace sardonyx
