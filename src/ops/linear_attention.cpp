#include <algorithm>
#include <cmath>

#include "ops/attention_core.h"
#include "ops/families.h"
#include "ops/infer_context.h"

namespace sardonyx {

namespace {

struct LinearSizes {
  Dim batch = kUnknownDim;
  Dim steps = kUnknownDim;
  Dim heads = 1;
  Dim kv_heads = 1;
  Dim key_size = kUnknownDim;
  Dim value_size = kUnknownDim;
  bool has_decay = false;
  bool has_delta = false;

  Dim out_heads() const { return std::max(heads, kv_heads); }
};

Result<LinearSizes> linear_sizes(const Attributes& attributes, const Shape& q, const Shape& k,
                                 const Shape& v) {
  LinearSizes sizes;
  if (q.rank() != 3 || k.rank() != 3 || v.rank() != 3) {
    return failure(Code::InvalidModel,
                   "query, key and value have shapes {}, {} and {}, expected three dimensions each",
                   q.to_string(), k.to_string(), v.to_string());
  }
  sizes.heads = attributes.get_int("q_num_heads", 0);
  sizes.kv_heads = attributes.get_int("kv_num_heads", 0);
  SDX_TRY(check_heads("q_num_heads", sizes.heads, q[2]));
  SDX_TRY(check_heads("kv_num_heads", sizes.kv_heads, k[2]));
  SDX_TRY(check_heads("kv_num_heads", sizes.kv_heads, v[2]));
  if (sizes.heads % sizes.kv_heads != 0 && sizes.kv_heads % sizes.heads != 0) {
    return failure(Code::InvalidModel, "{} query heads do not group over {} key heads", sizes.heads,
                   sizes.kv_heads);
  }
  sizes.batch = q[0];
  sizes.steps = q[1];
  if (is_known(q[2])) sizes.key_size = q[2] / sizes.heads;
  if (is_known(v[2])) sizes.value_size = v[2] / sizes.kv_heads;
  const Dim other = is_known(k[2]) ? k[2] / sizes.kv_heads : kUnknownDim;
  if (differ(sizes.key_size, other) || differ(q[0], k[0]) || differ(q[1], k[1]) ||
      differ(k[0], v[0]) || differ(k[1], v[1])) {
    return failure(Code::InvalidModel, "query, key and value of shapes {}, {} and {} do not fit",
                   q.to_string(), k.to_string(), v.to_string());
  }
  const std::string rule = attributes.get_string("update_rule", "gated_delta");
  sizes.has_decay = rule == "gated" || rule == "gated_delta";
  sizes.has_delta = rule == "delta" || rule == "gated_delta";
  if (!sizes.has_decay && !sizes.has_delta && rule != "linear") {
    return failure(Code::InvalidModel,
                   "update_rule is '{}', expected linear, gated, delta or gated_delta", rule);
  }
  if (attributes.get_int("state_window", 0) != 0) {
    return failure(Code::Unsupported, "a state_window of {}; only 0 is known",
                   attributes.get_int("state_window", 0));
  }
  return sizes;
}

/// decay and beta: [batch, steps, n] with n one of two counts.
Status check_gate(const InferContext& context, std::size_t input, const LinearSizes& sizes,
                  Dim first, Dim second) {
  if (!context.has_input(input)) {
    return context.error("input {} is needed for this update_rule", input);
  }
  const Shape* shape = context.shape(input);
  if (shape == nullptr) return {};
  const bool fits = shape->rank() == 3 && !differ((*shape)[0], sizes.batch) &&
                    !differ((*shape)[1], sizes.steps) &&
                    (!differ((*shape)[2], first) || !differ((*shape)[2], second));
  if (fits) return {};
  return context.error("'{}' has shape {}, expected [{}, {}, {} or {}]", context.input_name(input),
                       shape->to_string(), sizes.batch, sizes.steps, first, second);
}

Status infer_linear_attention(InferContext& context) {
  context.set_dtype(1, context.has_input(3) ? context.dtype(3) : context.dtype(0));
  const Shape* q = context.shape(0);
  const Shape* k = context.shape(1);
  const Shape* v = context.shape(2);
  if (q == nullptr || k == nullptr || v == nullptr) return {};
  SDX_ASSIGN(const LinearSizes s, linear_sizes(context.attributes(), *q, *k, *v));
  const Dim all = is_known(s.key_size) ? s.kv_heads * s.key_size : kUnknownDim;
  if (s.has_decay) SDX_TRY(check_gate(context, 4, s, s.kv_heads, all));
  if (s.has_delta) SDX_TRY(check_gate(context, 5, s, s.kv_heads, 1));
  const Shape state{s.batch, s.kv_heads, s.key_size, s.value_size};
  if (const Shape* past = context.shape(3)) {
    bool fits = past->rank() == 4;
    for (int i = 0; fits && i < 4; ++i) fits = !differ((*past)[i], state[i]);
    if (!fits) {
      return context.error("'{}' has shape {}, expected {}", context.input_name(3),
                           past->to_string(), state.to_string());
    }
  }
  const Dim hidden = is_known(s.value_size) ? s.out_heads() * s.value_size : kUnknownDim;
  context.set_shape(0, {s.batch, s.steps, hidden});
  context.set_shape(1, state);
  return {};
}

struct LinearOperands {
  Elements<float> q, k, v, decay, beta;
  bool decay_is_per_key = false;
  std::int64_t beta_count = 1;
};

/// One step of one key head: decays the state [key, value], then adds the outer product.
void update_state(const LinearSizes& s, const LinearOperands& in, std::int64_t row,
                  std::int64_t head, float* state, float* recalled) {
  const float* k = in.k.data() + (row * s.kv_heads + head) * s.key_size;
  const float* v = in.v.data() + (row * s.kv_heads + head) * s.value_size;
  if (s.has_decay) {
    for (std::int64_t i = 0; i < s.key_size; ++i) {
      const std::int64_t gate = in.decay_is_per_key ? (row * s.kv_heads + head) * s.key_size + i
                                                    : row * s.kv_heads + head;
      const float factor = std::exp(in.decay[gate]);
      for (std::int64_t j = 0; j < s.value_size; ++j) state[i * s.value_size + j] *= factor;
    }
  }
  std::copy_n(v, s.value_size, recalled);
  float rate = 1.0F;
  if (s.has_delta) {
    rate = in.beta[in.beta_count == 1 ? row : row * s.kv_heads + head];
    for (std::int64_t i = 0; i < s.key_size; ++i) {
      for (std::int64_t j = 0; j < s.value_size; ++j) {
        recalled[j] -= state[i * s.value_size + j] * k[i];
      }
    }
  }
  for (std::int64_t i = 0; i < s.key_size; ++i) {
    for (std::int64_t j = 0; j < s.value_size; ++j) {
      state[i * s.value_size + j] += rate * k[i] * recalled[j];
    }
  }
}

/// y += scale * q' state.
void read_state(const LinearSizes& s, const float* q, float scale, const float* state, float* y) {
  std::fill_n(y, s.value_size, 0.0F);
  for (std::int64_t i = 0; i < s.key_size; ++i) {
    for (std::int64_t j = 0; j < s.value_size; ++j) {
      y[j] += scale * q[i] * state[i * s.value_size + j];
    }
  }
}

Status evaluate_linear_attention(EvalContext& context) {
  SDX_ASSIGN(const LinearSizes s,
             linear_sizes(context.attributes(), context.tensor(0).shape(),
                          context.tensor(1).shape(), context.tensor(2).shape()));
  LinearOperands in;
  SDX_ASSIGN(in.q, Elements<float>::of(context.tensor(0)));
  SDX_ASSIGN(in.k, Elements<float>::of(context.tensor(1)));
  SDX_ASSIGN(in.v, Elements<float>::of(context.tensor(2)));
  SDX_ASSIGN(in.decay, Elements<float>::of(context.tensor_or_null(4)));
  SDX_ASSIGN(in.beta, Elements<float>::of(context.tensor_or_null(5)));
  SDX_ASSIGN(const auto past, Elements<float>::of(context.tensor_or_null(3)));
  in.decay_is_per_key = in.decay && context.tensor(4).dim(2) != s.kv_heads;
  in.beta_count = in.beta ? context.tensor(5).dim(2) : 1;
  float scale = context.attributes().get_float("scale", 0.0F);
  if (scale == 0.0F) scale = 1.0F / std::sqrt(static_cast<float>(s.key_size));
  SDX_ASSIGN(auto y, Staged<float>::open(context, 0));
  SDX_ASSIGN(auto present, Staged<float>::open(context, 1));
  const std::int64_t size = s.key_size * s.value_size;
  SDX_ASSIGN(Tensor scratch, make_scratch<float>(size + s.value_size));
  float* state = scratch.mutable_values<float>().data();
  for (std::int64_t i = 0; i < s.batch * s.kv_heads; ++i) {
    const std::int64_t b = i / s.kv_heads;
    const std::int64_t head = i % s.kv_heads;
    if (past)
      std::copy_n(past.data() + i * size, size, state);
    else
      std::fill_n(state, size, 0.0F);
    for (std::int64_t t = 0; t < s.steps; ++t) {
      const std::int64_t row = b * s.steps + t;
      update_state(s, in, row, head, state, state + size);
      if (!y) continue;
      const std::int64_t share = s.out_heads() / s.kv_heads;
      for (std::int64_t o = head * share; o < (head + 1) * share; ++o) {
        const std::int64_t q_head = o / (s.out_heads() / s.heads);
        read_state(s, in.q.data() + (row * s.heads + q_head) * s.key_size, scale, state,
                   y.data() + (row * s.out_heads() + o) * s.value_size);
      }
    }
    if (present) std::copy_n(state, size, present.data() + i * size);
  }
  y.commit();
  present.commit();
  return {};
}

constexpr DTypeSet kFloat = set_of(DType::Float32, DType::Float16, DType::BFloat16);

constexpr OpSchema kRows[] = {
    {"",
     "LinearAttention",
     27,
     {"TTTutt>TU", kFloat, kFloat},
     "chunk_size:i kv_num_heads:i! q_num_heads:i! scale:f update_rule:s",
     infer_linear_attention,
     evaluate_linear_attention},
    {"com.microsoft",
     "LinearAttention",
     1,
     {"TTTutt>TU", kFloat, kFloat},
     "chunk_size:i kv_num_heads:i! q_num_heads:i! scale:f state_window:i update_rule:s",
     infer_linear_attention,
     evaluate_linear_attention},
};

}  // namespace

std::span<const OpSchema> linear_attention_schemas() { return kRows; }

}  // namespace sardonyx
