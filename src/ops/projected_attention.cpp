#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/attention_core.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/product.h"

namespace sardonyx {

namespace {

/// Sizes shared by com.microsoft's attention operators.
struct Sizes {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t queries = 0;
  std::int64_t past = 0;
  std::int64_t keys = 0;
  std::int64_t head_size = 0;
  std::int64_t value_size = 0;

  std::int64_t total() const { return past + keys; }
};

/// Everything that is added to the scores: masks over keys, the causal limit, a bias.
class ScoreMask {
 public:
  static Result<ScoreMask> create(const EvalContext& context, const Sizes& sizes,
                                  const Tensor* mask, const Tensor* bias) {
    ScoreMask result(sizes);
    result.filter_ = context.attributes().get_float("mask_filter_value", -10000.0F);
    result.is_causal_ = context.attributes().get_int("unidirectional", 0) != 0;
    if (mask != nullptr) SDX_TRY(result.set_mask(*mask));
    if (bias != nullptr) SDX_TRY(result.set_bias(*bias));
    return result;
  }

  void apply(std::int64_t b, std::int64_t h, float* scores) const {
    const std::int64_t total = s_.total();
    for (std::int64_t i = 0; i < s_.queries; ++i, scores += total) {
      if (mask_ != nullptr) {
        for (std::int64_t j = 0; j < total; ++j) {
          if (is_masked(b, i, j)) scores[j] += filter_;
        }
      }
      if (bias_) {
        const float* row = bias_.data() + b * bias_batch_ + h * bias_head_ + i * total;
        for (std::int64_t j = 0; j < total; ++j) scores[j] += row[j];
      }
      if (!is_causal_) continue;
      std::fill(scores + std::min(total, s_.past + i + 1), scores + total,
                -std::numeric_limits<float>::infinity());
    }
  }

 private:
  enum class Kind : std::uint8_t { Ends, EndsAndStarts, Keys, Pairs, Square };

  explicit ScoreMask(const Sizes& sizes) : s_(sizes) {}

  Status set_mask(const Tensor& mask) {
    const Shape& shape = mask.shape();
    const std::int64_t total = s_.total();
    mask_ = mask.values<std::int32_t>().data();
    if (shape == Shape{s_.batch}) {
      kind_ = Kind::Ends;
    } else if (shape == Shape{2 * s_.batch}) {
      kind_ = Kind::EndsAndStarts;
    } else if (shape == Shape{s_.batch, total}) {
      kind_ = Kind::Keys;
    } else if (shape == Shape{s_.batch, s_.queries, total}) {
      kind_ = Kind::Pairs;
    } else if (shape.rank() == 4 && shape[0] == s_.batch && shape[1] == 1 && shape[2] == shape[3] &&
               shape[2] >= s_.past + s_.queries && shape[3] >= total) {
      kind_ = Kind::Square;
      side_ = shape[2];
    } else {
      return failure(Code::Unsupported, "a mask of shape {} for {} items, {} queries and {} keys",
                     shape.to_string(), s_.batch, s_.queries, total);
    }
    return {};
  }

  Status set_bias(const Tensor& bias) {
    const Shape& shape = bias.shape();
    const bool fits = shape.rank() == 4 && (shape[0] == 1 || shape[0] == s_.batch) &&
                      (shape[1] == 1 || shape[1] == s_.heads) && shape[2] == s_.queries &&
                      shape[3] == s_.total();
    if (!fits) {
      return failure(Code::Runtime, "a bias of shape {}, expected [{}, {}, {}, {}]",
                     shape.to_string(), s_.batch, s_.heads, s_.queries, s_.total());
    }
    SDX_ASSIGN(bias_, Elements<float>::of(bias));
    const std::int64_t plane = s_.queries * s_.total();
    bias_head_ = shape[1] == 1 ? 0 : plane;
    bias_batch_ = shape[0] == 1 ? 0 : shape[1] * plane;
    return {};
  }

  bool is_masked(std::int64_t b, std::int64_t i, std::int64_t j) const {
    const std::int64_t total = s_.total();
    switch (kind_) {
      case Kind::Ends: return j >= mask_[b];
      case Kind::EndsAndStarts: return j >= mask_[b] || j < mask_[s_.batch + b];
      case Kind::Keys: return mask_[b * total + j] <= 0;
      case Kind::Pairs: return mask_[(b * s_.queries + i) * total + j] <= 0;
      case Kind::Square: return mask_[(b * side_ + s_.past + i) * side_ + j] <= 0;
    }
    return false;
  }

  Sizes s_;
  float filter_ = 0.0F;
  bool is_causal_ = false;
  const std::int32_t* mask_ = nullptr;
  Kind kind_ = Kind::Ends;
  std::int64_t side_ = 0;
  Elements<float> bias_;
  std::int64_t bias_batch_ = 0;
  std::int64_t bias_head_ = 0;
};

AttentionJob<float> job_of(const Attributes& attributes, const Sizes& s) {
  AttentionJob<float> job{.batch = s.batch,
                          .heads = s.heads,
                          .kv_heads = s.heads,
                          .queries = s.queries,
                          .keys = s.total(),
                          .head_size = s.head_size,
                          .value_size = s.value_size};
  job.scale = attributes.get_float("scale", 0.0F);
  if (job.scale == 0.0F) job.scale = 1.0F / std::sqrt(static_cast<float>(s.head_size));
  return job;
}

/// Hidden sizes of the merged projections.
Result<std::array<std::int64_t, 3>> hidden_sizes(const Attributes& attributes, Dim columns) {
  const std::int64_t heads = attributes.get_int("num_heads", 0);
  const auto& given = attributes.get_ints("qkv_hidden_sizes");
  std::array<std::int64_t, 3> sizes{columns / 3, columns / 3, columns / 3};
  if (!given.empty()) {
    if (given.size() != 3) {
      return failure(Code::InvalidModel, "qkv_hidden_sizes has {} values, expected 3",
                     given.size());
    }
    std::copy(given.begin(), given.end(), sizes.begin());
  }
  bool fits = heads > 0 && sizes[0] == sizes[1];
  std::int64_t rest = columns;
  for (const std::int64_t size : sizes) {
    fits = fits && size > 0 && size <= rest && size % heads == 0;
    if (fits) rest -= size;
  }
  if (!fits || rest != 0) {
    return failure(Code::InvalidModel,
                   "{} columns do not split into Q, K and V of {} heads ({}, {} and {})", columns,
                   heads, sizes[0], sizes[1], sizes[2]);
  }
  for (const std::string_view flag : {"do_rotary", "past_present_share_buffer"}) {
    if (attributes.get_int(flag, 0) == 0) continue;
    return failure(Code::Unsupported, "{} is {}; only 0 is known", flag,
                   attributes.get_int(flag, 0));
  }
  return sizes;
}

/// Attention and QAttention differ in where bias, mask and past stand.
struct ProjectedInputs {
  std::size_t bias, mask, past;
};
constexpr ProjectedInputs kFloatInputs{2, 3, 4};
constexpr ProjectedInputs kQuantizedInputs{2, 5, 8};

Status infer_projected(InferContext& context, const ProjectedInputs& inputs) {
  const Shape* x = context.shape(0);
  const Shape* weight = context.shape(1);
  if (x == nullptr || weight == nullptr) return {};
  if (x->rank() != 3 || weight->rank() != 2 || differ((*x)[2], (*weight)[0])) {
    return context.error("an input of shape {} and weights of shape {} do not fit", x->to_string(),
                         weight->to_string());
  }
  if (!is_known((*weight)[1])) {
    context.set_shape(0, {(*x)[0], (*x)[1], kUnknownDim});
    return {};
  }
  SDX_ASSIGN(const auto sizes, hidden_sizes(context.attributes(), (*weight)[1]));
  const Shape* bias = context.shape(inputs.bias);
  if (bias != nullptr && (bias->rank() != 1 || differ((*bias)[0], (*weight)[1]))) {
    return context.error("'{}' has shape {}, expected [{}]", context.input_name(inputs.bias),
                         bias->to_string(), (*weight)[1]);
  }
  const std::int64_t heads = context.attributes().get_int("num_heads", 1);
  context.set_shape(0, {(*x)[0], (*x)[1], sizes[2]});
  Dim past = context.has_input(inputs.past) ? kUnknownDim : 0;
  if (const Shape* shape = context.shape(inputs.past)) {
    const Dim size = sizes[0] / heads;
    if (shape->rank() != 5 || differ((*shape)[0], 2) || differ((*shape)[1], (*x)[0]) ||
        differ((*shape)[2], heads) || differ((*shape)[4], size) || sizes[0] != sizes[2]) {
      return context.error("'{}' has shape {}, expected [2, {}, {}, past, {}]",
                           context.input_name(inputs.past), shape->to_string(), (*x)[0], heads,
                           size);
    }
    past = (*shape)[3];
  }
  const Dim total = is_known(past) && is_known((*x)[1]) ? past + (*x)[1] : kUnknownDim;
  context.set_shape(1, {2, (*x)[0], heads, total, sizes[0] / heads});
  return {};
}
Status infer_float_projected(InferContext& context) {
  return infer_projected(context, kFloatInputs);
}
Status infer_quantized_projected(InferContext& context) {
  return infer_projected(context, kQuantizedInputs);
}

/// Both halves of `present`: keys, then values.
Result<Tensor> joined_states(const Tensor& keys, const Tensor& values) {
  const std::int64_t count = keys.element_count();
  SDX_ASSIGN(Tensor both, make_scratch<float>(count + values.element_count()));
  float* to = both.mutable_values<float>().data();
  std::copy_n(keys.values<float>().data(), count, to);
  std::copy_n(values.values<float>().data(), values.element_count(), to + count);
  return both;
}

/// Attention over projections [batch, length, q + k + v], bias included.
Status attend_projected(EvalContext& context, const ProjectedInputs& inputs, const float* projected,
                        std::int64_t columns) {
  SDX_ASSIGN(const auto hidden, hidden_sizes(context.attributes(), columns));
  const Tensor* past_state = context.tensor_or_null(inputs.past);
  Sizes s;
  s.batch = context.tensor(0).dim(0);
  s.heads = context.attributes().get_int("num_heads", 1);
  s.queries = s.keys = context.tensor(0).dim(1);
  s.head_size = hidden[0] / s.heads;
  s.value_size = hidden[2] / s.heads;
  if (past_state != nullptr) s.past = past_state->dim(3);
  SDX_ASSIGN(const auto past, Elements<float>::of(past_state));
  const std::int64_t half = s.batch * s.heads * s.past * s.head_size;
  const auto view = [&](std::int64_t first, std::int64_t size) {
    return HeadRows<const float>{projected + first, s.keys * columns, size, columns};
  };
  SDX_ASSIGN(const Tensor keys, join_past(past.data(), s.past, view(hidden[0], s.head_size),
                                          s.batch, s.heads, s.keys, s.head_size));
  SDX_ASSIGN(const Tensor values,
             join_past(past ? past.data() + half : nullptr, s.past,
                       view(2 * hidden[0], s.value_size), s.batch, s.heads, s.keys, s.value_size));
  if (context.has_output(1)) {
    SDX_ASSIGN(const Tensor both, joined_states(keys, values));
    SDX_TRY(store_present(context, 1, both));
  }
  const Tensor* bias = inputs.past == kFloatInputs.past ? context.tensor_or_null(5) : nullptr;
  SDX_ASSIGN(const auto mask,
             ScoreMask::create(context, s, context.tensor_or_null(inputs.mask), bias));
  SDX_ASSIGN(auto y, Staged<float>::open(context, 0));
  AttentionJob<float> job = job_of(context.attributes(), s);
  job.q = view(0, s.head_size);
  job.k = HeadRows<const float>::heads_first(keys.values<float>().data(), s.heads, s.total(),
                                             s.head_size);
  job.v = HeadRows<const float>::heads_first(values.values<float>().data(), s.heads, s.total(),
                                             s.value_size);
  job.out = HeadRows<float>::rows_first(y.data(), s.heads, s.queries, s.value_size);
  SDX_TRY(attend<float>(
      job, [&](std::int64_t b, std::int64_t h, float* scores) { mask.apply(b, h, scores); }));
  y.commit();
  return {};
}

Status evaluate_projected(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const Tensor& weight = context.tensor(1);
  const std::int64_t rows = x.dim(0) * x.dim(1);
  const std::int64_t columns = weight.dim(1);
  SDX_ASSIGN(const auto input, Elements<float>::of(x));
  SDX_ASSIGN(const auto matrix, Elements<float>::of(weight));
  SDX_ASSIGN(const auto bias, Elements<float>::of(context.tensor_or_null(2)));
  SDX_ASSIGN(Tensor projected, make_scratch<float>(rows * columns));
  float* to = projected.mutable_values<float>().data();
  for (std::int64_t i = 0; i < rows * columns; ++i) to[i] = bias ? bias[i % columns] : 0.0F;
  multiply_add<float>({.rows = rows,
                       .columns = columns,
                       .depth = x.dim(2),
                       .a = input.data(),
                       .a_row = x.dim(2),
                       .a_column = 1,
                       .b = matrix.data(),
                       .b_row = columns,
                       .c = to,
                       .c_row = columns});
  return attend_projected(context, kFloatInputs, to, columns);
}

Status evaluate_quantized_projected(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const Tensor& weight = context.tensor(1);
  const std::int64_t columns = weight.dim(1);
  SDX_ASSIGN(const ProductShape shape, product_shape(x.shape(), weight.shape()));
  SDX_ASSIGN(Tensor projected, integer_product(shape, x, context.tensor_or_null(6), weight,
                                               context.tensor_or_null(7)));
  SDX_ASSIGN(const auto x_scale, per_axis_values(context.tensor(3), 1, "input_scale"));
  SDX_ASSIGN(const auto w_scale, per_axis_values(context.tensor(4), columns, "weight_scale"));
  SDX_ASSIGN(const auto bias, Elements<float>::of(context.tensor(2)));
  float* to = projected.mutable_values<float>().data();
  for (std::int64_t i = 0; i < projected.element_count(); ++i) {
    const std::int64_t c = i % columns;
    to[i] = to[i] * (x_scale[0] * w_scale[static_cast<std::size_t>(c)]) + bias[c];
  }
  return attend_projected(context, kQuantizedInputs, to, columns);
}

/// Inputs of MultiHeadAttention.
enum Multi : std::size_t {
  kQuery,
  kKey,
  kValue,
  kBias,
  kMask,
  kScoreBias,
  kPastKey,
  kPastValue,
  kPastLength,
  kIndirection
};

struct MultiSizes : Sizes {
  /// Q, K and V share one tensor [batch, length, heads, 3, size]; K and V share one [..., 2, size].
  bool is_packed = false;
  bool is_kv_packed = false;
  /// K and V come as [batch, heads, length, size].
  bool is_heads_first = false;
};

Result<MultiSizes> multi_sizes(const Attributes& attributes, const Shape& q, const Shape* k,
                               const Shape* v) {
  MultiSizes s;
  s.heads = attributes.get_int("num_heads", 0);
  s.is_packed = q.rank() == 5;
  s.is_kv_packed = k != nullptr && k->rank() == 5;
  s.is_heads_first = k != nullptr && k->rank() == 4;
  s.batch = q.rank() > 0 ? q[0] : kUnknownDim;
  bool fits = s.heads > 0;
  if (s.is_packed) {
    fits = fits && k == nullptr && !differ(q[2], s.heads) && !differ(q[3], 3);
    s.queries = s.keys = q[1];
    s.head_size = s.value_size = q[4];
  } else if (fits && q.rank() == 3 && (!is_known(q[2]) || q[2] % s.heads == 0)) {
    s.queries = q[1];
    s.head_size = is_known(q[2]) ? q[2] / s.heads : kUnknownDim;
    if (s.is_kv_packed) {
      fits = v == nullptr && !differ((*k)[2], s.heads) && !differ((*k)[3], 2) &&
             !differ((*k)[4], s.head_size) && !differ((*k)[0], s.batch);
      s.keys = (*k)[1];
      s.value_size = (*k)[4];
    } else if (k != nullptr && v != nullptr && v->rank() == k->rank()) {
      const int axis = s.is_heads_first ? 2 : 1;
      const Dim width = s.is_heads_first ? s.head_size : q[2];
      fits = (s.is_heads_first || k->rank() == 3) && !differ((*k)[axis], (*v)[axis]) &&
             !differ((*k)[k->rank() - 1], width) && !differ((*k)[0], s.batch) &&
             !differ((*v)[0], s.batch);
      fits =
          fits && (!s.is_heads_first || (!differ((*k)[1], s.heads) && !differ((*v)[1], s.heads)));
      s.keys = (*k)[axis];
      const Dim values = (*v)[v->rank() - 1];
      s.value_size = values;
      if (!s.is_heads_first && is_known(values)) {
        fits = fits && values % s.heads == 0;
        s.value_size = values / s.heads;
      }
    } else {
      fits = false;
    }
  } else {
    fits = false;
  }
  if (fits) return s;
  return failure(Code::InvalidModel,
                 "query, key and value of shapes {}, {} and {} do not fit {} heads", q.to_string(),
                 k != nullptr ? k->to_string() : "none", v != nullptr ? v->to_string() : "none",
                 s.heads);
}

Status infer_multi(InferContext& context) {
  if (context.has_input(kPastLength) || context.has_input(kIndirection)) {
    return failure(Code::Unsupported, "past and present in one shared buffer");
  }
  context.set_dtype(3, context.dtype(0));
  const Shape* q = context.shape(kQuery);
  const Shape* k = context.shape(kKey);
  const Shape* v = context.shape(kValue);
  const bool is_known_rank = q != nullptr && (k != nullptr || !context.has_input(kKey)) &&
                             (v != nullptr || !context.has_input(kValue));
  if (!is_known_rank) return {};
  SDX_ASSIGN(MultiSizes s, multi_sizes(context.attributes(), *q, k, v));
  if (context.has_input(kPastKey) != context.has_input(kPastValue)) {
    return context.error("past_key and past_value should be given together");
  }
  s.past = context.has_input(kPastKey) ? kUnknownDim : 0;
  for (const std::size_t i : {kPastKey, kPastValue}) {
    const Shape* past = context.shape(i);
    if (past == nullptr) continue;
    const Dim size = i == kPastKey ? s.head_size : s.value_size;
    if (past->rank() != 4 || differ((*past)[0], s.batch) || differ((*past)[1], s.heads) ||
        differ((*past)[2], s.past) || differ((*past)[3], size)) {
      return context.error("'{}' has shape {}, expected [{}, {}, {}, {}]", context.input_name(i),
                           past->to_string(), s.batch, s.heads, s.past, size);
    }
    s.past = (*past)[2];
  }
  const bool has_sizes = is_known(s.head_size) && is_known(s.value_size);
  const Dim all = has_sizes ? s.heads * (2 * s.head_size + s.value_size) : kUnknownDim;
  if (const Shape* bias = context.shape(kBias)) {
    if (bias->rank() != 1 || differ((*bias)[0], all)) {
      return context.error("'{}' has shape {}, expected [{}]", context.input_name(kBias),
                           bias->to_string(), all);
    }
  }
  const Dim total = is_known(s.past) && is_known(s.keys) ? s.past + s.keys : kUnknownDim;
  const Dim hidden = is_known(s.value_size) ? s.heads * s.value_size : kUnknownDim;
  context.set_shape(0, {s.batch, s.queries, hidden});
  context.set_shape(1, {s.batch, s.heads, total, s.head_size});
  context.set_shape(2, {s.batch, s.heads, total, s.value_size});
  context.set_shape(3, {s.batch, s.heads, s.queries, total});
  return {};
}

/// Rows of one of Q, K, V with its bias added: [batch, heads, rows, size].
Result<Tensor> biased(const HeadRows<const float>& rows, const MultiSizes& s, std::int64_t count,
                      std::int64_t size, const float* bias) {
  SDX_ASSIGN(Tensor result, join_past<float>(nullptr, 0, rows, s.batch, s.heads, count, size));
  if (bias == nullptr) return result;
  float* to = result.mutable_values<float>().data();
  for (std::int64_t i = 0; i < s.batch * s.heads * count; ++i) {
    const float* head = bias + i / count % s.heads * size;
    for (std::int64_t k = 0; k < size; ++k) to[i * size + k] += head[k];
  }
  return result;
}

Status evaluate_multi(EvalContext& context) {
  const Tensor* key = context.tensor_or_null(kKey);
  const Tensor* value = context.tensor_or_null(kValue);
  SDX_ASSIGN(MultiSizes s, multi_sizes(context.attributes(), context.tensor(kQuery).shape(),
                                       key != nullptr ? &key->shape() : nullptr,
                                       value != nullptr ? &value->shape() : nullptr));
  SDX_ASSIGN(const auto q, Elements<float>::of(context.tensor(kQuery)));
  SDX_ASSIGN(const auto k, Elements<float>::of(key));
  SDX_ASSIGN(const auto v, Elements<float>::of(value));
  SDX_ASSIGN(const auto bias, Elements<float>::of(context.tensor_or_null(kBias)));
  SDX_ASSIGN(const auto past_key, Elements<float>::of(context.tensor_or_null(kPastKey)));
  SDX_ASSIGN(const auto past_value, Elements<float>::of(context.tensor_or_null(kPastValue)));
  if (past_key) s.past = context.tensor(kPastKey).dim(2);
  const std::int64_t hidden = s.heads * s.head_size;
  const auto packed = [&](const float* data, std::int64_t parts, std::int64_t part) {
    const std::int64_t row = s.heads * parts * s.head_size;
    return HeadRows<const float>{data + part * s.head_size, s.keys * row, parts * s.head_size, row};
  };
  const auto side = [&](const float* data, std::int64_t rows, std::int64_t size) {
    return s.is_heads_first && data != q.data()
               ? HeadRows<const float>::heads_first(data, s.heads, rows, size)
               : HeadRows<const float>::rows_first(data, s.heads, rows, size);
  };
  HeadRows<const float> q_rows = side(q.data(), s.queries, s.head_size);
  HeadRows<const float> k_rows = side(k.data(), s.keys, s.head_size);
  HeadRows<const float> v_rows = side(v.data(), s.keys, s.value_size);
  if (s.is_packed)
    q_rows = packed(q.data(), 3, 0), k_rows = packed(q.data(), 3, 1),
    v_rows = packed(q.data(), 3, 2);
  if (s.is_kv_packed) k_rows = packed(k.data(), 2, 0), v_rows = packed(k.data(), 2, 1);
  // Keys and values that come as a cache are biased already.
  const float* kv_bias = bias && !s.is_heads_first ? bias.data() + hidden : nullptr;
  SDX_ASSIGN(const Tensor queries, biased(q_rows, s, s.queries, s.head_size, bias.data()));
  SDX_ASSIGN(Tensor keys, biased(k_rows, s, s.keys, s.head_size, kv_bias));
  SDX_ASSIGN(Tensor values, biased(v_rows, s, s.keys, s.value_size,
                                   kv_bias != nullptr ? kv_bias + hidden : nullptr));
  const auto first = [&](const Tensor& tensor, std::int64_t rows, std::int64_t size) {
    return HeadRows<const float>::heads_first(tensor.values<float>().data(), s.heads, rows, size);
  };
  if (s.past > 0) {
    SDX_ASSIGN(keys, join_past(past_key.data(), s.past, first(keys, s.keys, s.head_size), s.batch,
                               s.heads, s.keys, s.head_size));
    SDX_ASSIGN(values, join_past(past_value.data(), s.past, first(values, s.keys, s.value_size),
                                 s.batch, s.heads, s.keys, s.value_size));
  }
  SDX_TRY(store_present(context, 1, keys));
  SDX_TRY(store_present(context, 2, values));
  SDX_ASSIGN(const auto mask, ScoreMask::create(context, s, context.tensor_or_null(kMask),
                                                context.tensor_or_null(kScoreBias)));
  SDX_ASSIGN(auto y, Staged<float>::open(context, 0));
  SDX_ASSIGN(auto scores, Staged<float>::open(context, 3));
  AttentionJob<float> job = job_of(context.attributes(), s);
  job.q = first(queries, s.queries, s.head_size);
  job.k = first(keys, s.total(), s.head_size);
  job.v = first(values, s.total(), s.value_size);
  job.out = HeadRows<float>::rows_first(y.data(), s.heads, s.queries, s.value_size);
  job.scores_out = scores.data();
  job.stage = 2;
  SDX_TRY(attend<float>(
      job, [&](std::int64_t b, std::int64_t h, float* row) { mask.apply(b, h, row); }));
  y.commit();
  scores.commit();
  return {};
}

constexpr DTypeSet kFloat = set_of(DType::Float32, DType::Float16, DType::BFloat16);
constexpr DTypeSet k8Bit = set_of(DType::Int8, DType::UInt8);
constexpr DTypeSet kInt32 = set_of(DType::Int32);

constexpr OpSchema kRows[] = {
    {"com.microsoft",
     "Attention",
     1,
     {"TTtuttu>Tt", kFloat, kInt32},
     "do_rotary:i mask_filter_value:f num_heads:i! past_present_share_buffer:i "
     "qkv_hidden_sizes:is rotary_embedding_dim:i scale:f unidirectional:i",
     infer_float_projected,
     evaluate_projected},
    {"com.microsoft",
     "QAttention",
     1,
     {"TUVVVwtuv>Vv", k8Bit, k8Bit, kFloat, kInt32},
     "do_rotary:i mask_filter_value:f num_heads:i! past_present_share_buffer:i scale:f "
     "unidirectional:i",
     infer_quantized_projected,
     evaluate_quantized_projected},
    {"com.microsoft",
     "MultiHeadAttention",
     1,
     {"Ttttutttuu>Tttt", kFloat, kInt32},
     "mask_filter_value:f num_heads:i! scale:f unidirectional:i",
     infer_multi,
     evaluate_multi},
};

}  // namespace

std::span<const OpSchema> projected_attention_schemas() { return kRows; }

}  // namespace sardonyx
