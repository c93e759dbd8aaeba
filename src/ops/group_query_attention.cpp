#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/element.h"
#include "ops/attention_core.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/rotary.h"

namespace sardonyx {

namespace {

enum Input : std::size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLastPositions,
  kTotal,
  kCosines,
  kSines,
  kPositions,
  kScoreBias,
  kSinks,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm,
  kQueryLengths
};

struct Sizes {
  bool is_packed = false;
  Dim batch = kUnknownDim;
  Dim length = kUnknownDim;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  Dim size = kUnknownDim;
  /// Rows of the past cache.
  Dim past = 0;
  /// The most rows that any item has after this step.
  Dim total = kUnknownDim;

  Dim present() const {
    return is_known(past) && is_known(total) ? std::max(past, total) : kUnknownDim;
  }
};

/// What this build does not do is refused by name.
Status check_known(const Attributes& attributes, const Node& node) {
  const auto is_given = [&](std::size_t i) {
    return i < node.inputs.size() && node.inputs[i] != kNoValue;
  };
  if (is_given(kKeyScale) || is_given(kValueScale) ||
      attributes.get_string("k_quant_type", "NONE") != "NONE" ||
      attributes.get_string("v_quant_type", "NONE") != "NONE") {
    return failure(Code::Unsupported, "quantized key and value caches (k_scale, v_scale)");
  }
  if (is_given(kQueryNorm) || is_given(kKeyNorm)) {
    return failure(Code::Unsupported, "norms of queries and keys (q_norm_weight, k_norm_weight)");
  }
  if (is_given(kQueryLengths)) return failure(Code::Unsupported, "padded chunks (query_seqlens)");
  if (attributes.get_int("sliding_window_cache", 0) != 0) {
    return failure(Code::Unsupported, "a cache of the window's size (sliding_window_cache)");
  }
  return {};
}

Result<Sizes> sizes_of(const Attributes& attributes, const Shape& q, const Shape* k) {
  Sizes s;
  s.heads = attributes.get_int("num_heads", 0);
  s.kv_heads = attributes.get_int("kv_num_heads", 0);
  s.is_packed = k == nullptr;
  if (s.heads < 1 || s.kv_heads < 1 || s.heads > (1 << 20) || s.heads % s.kv_heads != 0) {
    return failure(Code::InvalidModel, "{} query heads do not group over {} key heads", s.heads,
                   s.kv_heads);
  }
  if (q.rank() != 3 || (k != nullptr && k->rank() != 3)) {
    return failure(Code::InvalidModel, "query of shape {}, expected [batch, length, hidden]",
                   q.to_string());
  }
  s.batch = q[0];
  s.length = q[1];
  const std::int64_t parts = s.heads + (s.is_packed ? 2 * s.kv_heads : 0);
  SDX_TRY(check_heads("the number of heads", parts, q[2]));
  if (is_known(q[2])) s.size = q[2] / parts;
  const Dim kv_hidden = is_known(s.size) ? s.size * s.kv_heads : kUnknownDim;
  if (k != nullptr &&
      (differ((*k)[0], q[0]) || differ((*k)[1], q[1]) || differ((*k)[2], kv_hidden))) {
    return failure(Code::InvalidModel, "key of shape {}, expected [{}, {}, {}]", k->to_string(),
                   q[0], q[1], kv_hidden);
  }
  return s;
}

Status check_inputs(const InferContext& context, Sizes& s) {
  for (const std::size_t i : {kPastKey, kPastValue}) {
    if (context.has_input(i)) s.past = kUnknownDim;
  }
  for (const std::size_t i : {kPastKey, kPastValue}) {
    const Shape* past = context.shape(i);
    if (past == nullptr) continue;
    if (past->rank() != 4 || differ((*past)[0], s.batch) || differ((*past)[1], s.kv_heads) ||
        differ((*past)[2], s.past) || differ((*past)[3], s.size)) {
      return context.error("'{}' has shape {}, expected [{}, {}, {}, {}]", context.input_name(i),
                           past->to_string(), s.batch, s.kv_heads, s.past, s.size);
    }
    s.past = (*past)[2];
  }
  const Shape* key = context.shape(kKey);
  const Shape* value = context.shape(kValue);
  bool is_same = key == nullptr || value == nullptr || key->rank() == value->rank();
  for (int i = 0; is_same && key != nullptr && value != nullptr && i < key->rank(); ++i) {
    is_same = !differ((*key)[i], (*value)[i]);
  }
  if (!is_same) {
    return context.error("'{}' has shape {}, expected {} as '{}'", context.input_name(kValue),
                         value->to_string(), key->to_string(), context.input_name(kKey));
  }
  for (const std::size_t i : {kCosines, kSines}) {
    const Shape* cache = context.shape(i);
    if (cache == nullptr) continue;
    if (cache->rank() != 2 || (is_known(s.size) && (*cache)[1] > s.size / 2)) {
      return context.error("'{}' has shape {}, expected at most {} columns", context.input_name(i),
                           cache->to_string(), is_known(s.size) ? s.size / 2 : kUnknownDim);
    }
  }
  const Shape* sinks = context.shape(kSinks);
  if (sinks != nullptr && (sinks->rank() != 1 || differ((*sinks)[0], s.heads))) {
    return context.error("'{}' has shape {}, expected [{}]", context.input_name(kSinks),
                         sinks->to_string(), s.heads);
  }
  return {};
}

Status infer_group_query(InferContext& context) {
  SDX_TRY(check_known(context.attributes(), context.node()));
  context.set_dtype(1, context.dtype(kQuery));
  context.set_dtype(2, context.dtype(kQuery));
  const Shape* q = context.shape(kQuery);
  if (q == nullptr || (context.has_input(kKey) && context.shape(kKey) == nullptr)) return {};
  SDX_ASSIGN(Sizes s, sizes_of(context.attributes(), *q, context.shape(kKey)));
  SDX_TRY(check_inputs(context, s));
  if (const Tensor* total = context.data(kTotal)) {
    if (total->element_count() == 1) s.total = read_int(total->dtype(), total->data(), 0);
    if (s.total < 1) return context.error("total_sequence_length is {}", s.total);
  }
  const Dim hidden = is_known(s.size) ? s.heads * s.size : kUnknownDim;
  context.set_shape(0, {s.batch, s.length, hidden});
  context.set_shape(1, {s.batch, s.kv_heads, s.present(), s.size});
  context.set_shape(2, {s.batch, s.kv_heads, s.present(), s.size});
  context.set_shape(3, {s.batch, s.heads, s.length, s.total});
  return {};
}

/// Where the new rows of each batch item stand in its cache.
struct Steps {
  std::vector<std::int64_t> past;
  std::vector<std::int64_t> total;
};

Result<Steps> steps_of(EvalContext& context, const Sizes& s) {
  Steps steps;
  const auto last = context.ints(kLastPositions);
  if (last.size() != static_cast<std::size_t>(s.batch)) {
    return failure(Code::Runtime, "seqlens_k has {} elements, expected {}", last.size(), s.batch);
  }
  const bool is_prompt = s.length == s.total;
  for (const std::int64_t position : last) {
    const std::int64_t total = position + 1;
    const std::int64_t past = is_prompt ? 0 : total - s.length;
    if (total < 1 || total > s.total || past < 0 || past > s.past) {
      return failure(Code::Runtime,
                     "seqlens_k holds {}: {} tokens in all, {} of them new, do not fit a cache of "
                     "{} and a total of {}",
                     position, total, s.length, s.past, s.total);
    }
    steps.past.push_back(past);
    steps.total.push_back(total);
  }
  return steps;
}

/// Turns queries and keys by their positions.
class Rotation {
 public:
  static Result<Rotation> create(EvalContext& context, const Sizes& s) {
    Rotation rotation;
    if (context.attributes().get_int("do_rotary", 0) == 0) return rotation;
    if (!context.has_input(kCosines) || !context.has_input(kSines)) {
      return failure(Code::InvalidModel, "do_rotary is set without cos_cache and sin_cache");
    }
    rotation.is_on_ = true;
    rotation.is_interleaved_ = context.attributes().get_int("rotary_interleaved", 0) != 0;
    rotation.half_ = context.tensor(kCosines).dim(1);
    rotation.limit_ = std::min(context.tensor(kCosines).dim(0), context.tensor(kSines).dim(0));
    rotation.length_ = s.length;
    rotation.positions_ = context.ints(kPositions);
    const auto count = static_cast<std::size_t>(s.batch * s.length);
    if (context.tensor(kSines).dim(1) != rotation.half_ ||
        (context.has_input(kPositions) && rotation.positions_.size() != count)) {
      return failure(Code::Runtime, "caches of {} and {} columns, {} positions for {} tokens",
                     rotation.half_, context.tensor(kSines).dim(1), rotation.positions_.size(),
                     count);
    }
    SDX_ASSIGN(rotation.cosines_, Elements<float>::of(context.tensor(kCosines)));
    SDX_ASSIGN(rotation.sines_, Elements<float>::of(context.tensor(kSines)));
    return rotation;
  }

  /// to = from turned for token t of item b, which stands at `position`.
  Status apply(const float* from, std::int64_t size, std::int64_t b, std::int64_t t,
               std::int64_t position, float* to) const {
    if (!is_on_) {
      std::copy_n(from, size, to);
      return {};
    }
    if (!positions_.empty()) position = positions_[static_cast<std::size_t>(b * length_ + t)];
    if (position < 0 || position >= limit_) {
      return failure(Code::Runtime, "position {} is outside [0, {})", position, limit_);
    }
    rotate_row(from, size, 2 * half_, is_interleaved_, cosines_.data() + position * half_,
               sines_.data() + position * half_, to);
    return {};
  }

 private:
  bool is_on_ = false;
  bool is_interleaved_ = false;
  std::int64_t half_ = 0;
  std::int64_t limit_ = 0;
  std::int64_t length_ = 0;
  std::vector<std::int64_t> positions_;
  Elements<float> cosines_;
  Elements<float> sines_;
};

/// The cache after this step: past rows, then new ones; zero beyond.
Result<Tensor> grow_cache(const Sizes& s, const Steps& steps, const float* past,
                          const HeadRows<const float>& rows, const Rotation* rotation) {
  const std::int64_t present = s.present();
  SDX_ASSIGN(Tensor cache, make_scratch<float>(s.batch * s.kv_heads * present * s.size));
  float* to = cache.mutable_values<float>().data();
  std::fill_n(to, cache.element_count(), 0.0F);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const std::int64_t kept = steps.past[static_cast<std::size_t>(b)];
    for (std::int64_t h = 0; h < s.kv_heads; ++h, to += present * s.size) {
      const float* old_rows = past + (b * s.kv_heads + h) * s.past * s.size;
      if (kept > 0) std::copy_n(old_rows, kept * s.size, to);
      for (std::int64_t t = 0; t < s.length && kept + t < present; ++t) {
        const float* from = rows.at(b, h) + t * rows.row_stride;
        float* target = to + (kept + t) * s.size;
        if (rotation == nullptr) {
          std::copy_n(from, s.size, target);
        } else {
          SDX_TRY(rotation->apply(from, s.size, b, t, kept + t, target));
        }
      }
    }
  }
  return cache;
}

Result<Tensor> turn_queries(const Sizes& s, const Steps& steps, const HeadRows<const float>& rows,
                            const Rotation& rotation) {
  SDX_ASSIGN(Tensor queries, make_scratch<float>(s.batch * s.heads * s.length * s.size));
  float* to = queries.mutable_values<float>().data();
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      for (std::int64_t t = 0; t < s.length; ++t, to += s.size) {
        SDX_TRY(rotation.apply(rows.at(b, h) + t * rows.row_stride, s.size, b, t,
                               steps.past[static_cast<std::size_t>(b)] + t, to));
      }
    }
  }
  return queries;
}

/// Limits each query to the keys before it (and to the window), and adds a bias.
class Limits {
 public:
  static Result<Limits> create(EvalContext& context, const Sizes& s, const Steps& steps) {
    Limits limits(s, steps);
    limits.is_causal_ = context.attributes().get_int("causal", 1) != 0;
    limits.window_ = context.attributes().get_int("local_window_size", -1);
    const Tensor* bias = context.tensor_or_null(kScoreBias);
    if (bias == nullptr) return limits;
    const Shape& shape = bias->shape();
    const bool fits = shape.rank() == 4 && (shape[0] == 1 || shape[0] == s.batch) &&
                      (shape[1] == 1 || shape[1] == s.heads) && shape[2] == s.length &&
                      shape[3] >= s.total;
    if (!fits) {
      return failure(Code::Runtime, "attention_bias has shape {}, expected [{}, {}, {}, {}]",
                     shape.to_string(), s.batch, s.heads, s.length, s.total);
    }
    SDX_ASSIGN(limits.bias_, Elements<float>::of(*bias));
    limits.bias_row_ = shape[3];
    limits.bias_head_ = shape[1] == 1 ? 0 : shape[2] * shape[3];
    limits.bias_batch_ = shape[0] == 1 ? 0 : shape[1] * shape[2] * shape[3];
    return limits;
  }

  void apply(std::int64_t b, std::int64_t h, float* scores) const {
    constexpr float kNone = -std::numeric_limits<float>::infinity();
    const std::int64_t past = steps_.past[static_cast<std::size_t>(b)];
    const std::int64_t total = steps_.total[static_cast<std::size_t>(b)];
    for (std::int64_t i = 0; i < s_.length; ++i, scores += s_.total) {
      std::int64_t end = is_causal_ ? past + i + 1 : total;
      end = std::min(end, s_.total);
      const std::int64_t begin = window_ > 0 ? std::max<std::int64_t>(0, end - window_) : 0;
      if (bias_) {
        const float* row = bias_.data() + b * bias_batch_ + h * bias_head_ + i * bias_row_;
        for (std::int64_t j = begin; j < end; ++j) scores[j] += row[j];
      }
      std::fill(scores, scores + begin, kNone);
      std::fill(scores + end, scores + s_.total, kNone);
    }
  }

 private:
  Limits(const Sizes& s, const Steps& steps) : s_(s), steps_(steps) {}

  Sizes s_;
  const Steps& steps_;
  bool is_causal_ = true;
  std::int64_t window_ = -1;
  Elements<float> bias_;
  std::int64_t bias_row_ = 0;
  std::int64_t bias_head_ = 0;
  std::int64_t bias_batch_ = 0;
};

Status evaluate_group_query(EvalContext& context) {
  const Tensor* key = context.tensor_or_null(kKey);
  SDX_ASSIGN(Sizes s, sizes_of(context.attributes(), context.tensor(kQuery).shape(),
                               key != nullptr ? &key->shape() : nullptr));
  if (const Tensor* past = context.tensor_or_null(kPastKey)) s.past = past->dim(2);
  const auto total = context.ints(kTotal);
  if (total.size() != 1 || !context.has_input(kPastKey) != !context.has_input(kPastValue) ||
      !s.is_packed != context.has_input(kValue)) {
    return context.error("key and value, and past_key and past_value, should be given together");
  }
  s.total = total[0];
  SDX_ASSIGN(const Steps steps, steps_of(context, s));
  SDX_ASSIGN(const auto q, Elements<float>::of(context.tensor(kQuery)));
  SDX_ASSIGN(const auto k, Elements<float>::of(key));
  SDX_ASSIGN(const auto v, Elements<float>::of(context.tensor_or_null(kValue)));
  SDX_ASSIGN(const auto past_key, Elements<float>::of(context.tensor_or_null(kPastKey)));
  SDX_ASSIGN(const auto past_value, Elements<float>::of(context.tensor_or_null(kPastValue)));
  SDX_ASSIGN(const auto given_sinks, Elements<float>::of(context.tensor_or_null(kSinks)));
  const std::int64_t row = context.tensor(kQuery).dim(2);
  const auto part = [&](std::int64_t first) {
    return HeadRows<const float>{q.data() + first * s.size, s.length * row, s.size, row};
  };
  const auto whole = [&](const float* data) {
    return HeadRows<const float>::rows_first(data, s.kv_heads, s.length, s.size);
  };
  SDX_ASSIGN(const Rotation rotation, Rotation::create(context, s));
  SDX_ASSIGN(const Tensor queries, turn_queries(s, steps, part(0), rotation));
  SDX_ASSIGN(const Tensor keys,
             grow_cache(s, steps, past_key.data(), s.is_packed ? part(s.heads) : whole(k.data()),
                        &rotation));
  SDX_ASSIGN(const Tensor values,
             grow_cache(s, steps, past_value.data(),
                        s.is_packed ? part(s.heads + s.kv_heads) : whole(v.data()), nullptr));
  SDX_TRY(store_present(context, 1, keys));
  SDX_TRY(store_present(context, 2, values));
  SDX_ASSIGN(const Limits limits, Limits::create(context, s, steps));
  SDX_ASSIGN(auto y, Staged<float>::open(context, 0));
  SDX_ASSIGN(auto scores, Staged<float>::open(context, 3));
  const Attributes& attributes = context.attributes();
  const std::vector<float> zeros(static_cast<std::size_t>(s.heads), 0.0F);
  AttentionJob<float> job{.batch = s.batch,
                          .heads = s.heads,
                          .kv_heads = s.kv_heads,
                          .queries = s.length,
                          .keys = s.total,
                          .head_size = s.size,
                          .value_size = s.size};
  job.q =
      HeadRows<const float>::heads_first(queries.values<float>().data(), s.heads, s.length, s.size);
  job.k = HeadRows<const float>::heads_first(keys.values<float>().data(), s.kv_heads, s.present(),
                                             s.size);
  job.v = HeadRows<const float>::heads_first(values.values<float>().data(), s.kv_heads, s.present(),
                                             s.size);
  job.out = HeadRows<float>::rows_first(y.data(), s.heads, s.length, s.size);
  job.scale = attributes.get_float("scale", 0.0F);
  if (job.scale == 0.0F) job.scale = 1.0F / std::sqrt(static_cast<float>(s.size));
  job.softcap = attributes.get_float("softcap", 0.0F);
  if (attributes.get_int("smooth_softmax", 0) > 0) job.sinks = zeros.data();
  if (given_sinks) job.sinks = given_sinks.data();
  job.scores_out = scores.data();
  job.stage = attributes.get_int("qk_output", 0) == 2 ? 3 : 2;
  SDX_TRY(attend<float>(
      job, [&](std::int64_t b, std::int64_t h, float* rows) { limits.apply(b, h, rows); }));
  y.commit();
  scores.commit();
  return {};
}

constexpr DTypeSet kFloat = set_of(DType::Float32, DType::Float16, DType::BFloat16);
constexpr DTypeSet kInt32 = set_of(DType::Int32);

constexpr OpSchema kRows[] = {
    {"com.microsoft",
     "GroupQueryAttention",
     1,
     {"TttttUUttittffttu>Tttt", kFloat, kInt32},
     "causal:i do_rotary:i k_norm_epsilon:f k_quant_type:s kv_cache_bit_width:i kv_num_heads:i! "
     "local_window_size:i num_heads:i! q_norm_epsilon:f qk_norm_epsilon:f qk_output:i "
     "rotary_interleaved:i scale:f sliding_window_cache:i smooth_softmax:i softcap:f "
     "v_quant_type:s",
     infer_group_query,
     evaluate_group_query},
};

}  // namespace

std::span<const OpSchema> group_query_attention_schemas() { return kRows; }

}  // namespace sardonyx
