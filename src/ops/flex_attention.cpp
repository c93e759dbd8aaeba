#include <algorithm>
#include <cmath>

#include "ir/element.h"
#include "ops/attention_core.h"
#include "ops/families.h"
#include "ops/infer_context.h"

namespace sardonyx {

namespace {

/// The element type that scores and probabilities have inside the modifiers.
DType precision_of(const Attributes& attributes, DType input) {
  const std::int64_t given = attributes.get_int("softmax_precision", 0);
  if (given != 0) return dtype_from_onnx(given).value_or(DType::Undefined);
  return input == DType::Float64 ? DType::Float64 : DType::Float32;
}

Status infer_flex(InferContext& context) {
  const Shape* q = context.shape(0);
  const Shape* k = context.shape(1);
  const Shape* v = context.shape(2);
  const DType precision = precision_of(context.attributes(), context.dtype(0));
  if (!contains(kFloatsBf16, precision)) {
    return context.error("softmax_precision is {}, expected a float type",
                         context.attributes().get_int("softmax_precision", 0));
  }
  Shape scores = Shape::filled(4, kUnknownDim);
  if (q != nullptr && k != nullptr && v != nullptr) {
    const bool has_rank = q->rank() == 4 && k->rank() == 4 && v->rank() == 4;
    const bool fits = has_rank && !differ((*q)[0], (*k)[0]) && !differ((*q)[0], (*v)[0]) &&
                      !differ((*k)[1], (*v)[1]) && !differ((*k)[2], (*v)[2]) &&
                      !differ((*q)[3], (*k)[3]);
    if (!fits) {
      return context.error("Q, K and V of shapes {}, {} and {} do not fit together", q->to_string(),
                           k->to_string(), v->to_string());
    }
    if (is_known((*q)[1]) && is_known((*k)[1]) && ((*k)[1] < 1 || (*q)[1] % (*k)[1] != 0)) {
      return context.error("{} query heads are no multiple of {} key heads", (*q)[1], (*k)[1]);
    }
    context.set_shape(0, {(*q)[0], (*q)[1], (*q)[2], (*v)[3]});
    scores = {(*q)[0], (*q)[1], (*q)[2], (*k)[2]};
  }
  for (const std::string_view name : {"score_mod", "prob_mod"}) {
    if (!context.attributes().has(name)) continue;
    const Type input = Type::tensor(precision, scores);
    SDX_ASSIGN(const auto types, context.infer_subgraph(name, std::span(&input, 1)));
    if (types.size() != 1)
      return context.error("{} has {} outputs, expected 1", name, types.size());
  }
  return {};
}

/// Runs the modifier in that attribute on a tensor and takes its result in its place.
Status modify(EvalContext& context, std::string_view name, Tensor& tensor, DType precision) {
  if (!context.attributes().has(name)) return {};
  SDX_ASSIGN(Tensor input, to_dtype(tensor, precision));
  const Datum datum(input.reshaped(tensor.shape()));
  SDX_ASSIGN(auto results, context.run_subgraph(name, std::span(&datum, 1)));
  const Tensor* result = results.size() == 1 ? results[0].tensor() : nullptr;
  if (result == nullptr || !(result->shape() == tensor.shape()) || result->dtype() != precision) {
    return context.error("{} should return a {} tensor of shape {}", name, dtype_name(precision),
                         tensor.shape().to_string());
  }
  SDX_ASSIGN(tensor, to_dtype(*result, tensor.dtype()));
  return {};
}

template <typename C>
Status flex_attention(EvalContext& context) {
  const Shape& q = context.tensor(0).shape();
  const Shape& k = context.tensor(1).shape();
  const std::int64_t value_size = context.tensor(2).dim(3);
  const DType precision = precision_of(context.attributes(), context.tensor(0).dtype());
  SDX_ASSIGN(const auto queries, Elements<C>::of(context.tensor(0)));
  SDX_ASSIGN(const auto keys, Elements<C>::of(context.tensor(1)));
  SDX_ASSIGN(const auto values, Elements<C>::of(context.tensor(2)));
  constexpr DType dtype = std::is_same_v<C, double> ? DType::Float64 : DType::Float32;
  SDX_ASSIGN(Tensor scores, Tensor::allocate(dtype, {q[0], q[1], q[2], k[2]}));
  SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
  if (!y) return {};
  const float* given = context.attributes().template get_if<float>("scale");
  AttentionJob<C> job{.batch = q[0],
                      .heads = q[1],
                      .kv_heads = k[1],
                      .queries = q[2],
                      .keys = k[2],
                      .head_size = q[3],
                      .value_size = value_size};
  job.q = HeadRows<const C>::heads_first(queries.data(), q[1], q[2], q[3]);
  job.k = HeadRows<const C>::heads_first(keys.data(), k[1], k[2], k[3]);
  job.v = HeadRows<const C>::heads_first(values.data(), k[1], k[2], value_size);
  job.scale = given != nullptr ? static_cast<C>(*given)
                               : static_cast<C>(1.0 / std::sqrt(static_cast<double>(q[3])));
  job.scores_out = reinterpret_cast<C*>(scores.mutable_data());
  if (q[1] > 0) SDX_TRY(attend<C>(job, [](std::int64_t, std::int64_t, C*) {}));
  SDX_TRY(modify(context, "score_mod", scores, precision));
  const std::int64_t rows = q[0] * q[1] * q[2];
  softmax_rows<C>(reinterpret_cast<C*>(scores.mutable_data()), rows, k[2], nullptr);
  SDX_TRY(modify(context, "prob_mod", scores, precision));
  const auto* weights = reinterpret_cast<const C*>(scores.data());
  std::fill_n(y.data(), y.element_count(), C{});
  for (std::int64_t i = 0; i < q[0] * q[1]; ++i) {
    const std::int64_t kv_head = i % q[1] / (q[1] / k[1]);
    multiply_add<C>({.rows = q[2],
                     .columns = value_size,
                     .depth = k[2],
                     .a = weights + i * q[2] * k[2],
                     .a_row = k[2],
                     .a_column = 1,
                     .b = job.v.at(i / q[1], kv_head),
                     .b_row = value_size,
                     .c = y.data() + i * q[2] * value_size,
                     .c_row = value_size});
  }
  y.commit();
  return {};
}

Status evaluate_flex(EvalContext& context) {
  const bool is_wide = context.tensor(0).dtype() == DType::Float64 ||
                       precision_of(context.attributes(), DType::Float32) == DType::Float64;
  return is_wide ? flex_attention<double>(context) : flex_attention<float>(context);
}

constexpr OpSchema kRows[] = {
    {"ai.onnx.preview",
     "FlexAttention",
     1,
     {"TTT>T", kFloatsBf16},
     "prob_mod:g scale:f score_mod:g softmax_precision:i",
     infer_flex,
     evaluate_flex},
};

}  // namespace

std::span<const OpSchema> flex_attention_schemas() { return kRows; }

}  // namespace sardonyx
