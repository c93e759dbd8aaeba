#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/attention_core.h"
#include "ops/families.h"
#include "ops/infer_context.h"

namespace sardonyx {

namespace {

enum Input : std::size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kLengths };

/// Sizes of an Attention node, unknown where the shapes do not tell.
struct Sizes {
  bool is_packed = false;
  Dim batch = kUnknownDim;
  Dim heads = kUnknownDim;
  Dim kv_heads = kUnknownDim;
  Dim queries = kUnknownDim;
  Dim past = 0;
  Dim keys = kUnknownDim;
  Dim head_size = kUnknownDim;
  Dim value_size = kUnknownDim;

  Dim total() const { return is_known(past) && is_known(keys) ? past + keys : kUnknownDim; }
};

Dim part_of(Dim size, std::int64_t heads) { return is_known(size) ? size / heads : kUnknownDim; }

Result<Sizes> sizes_of(const Attributes& attributes, const Shape& q, const Shape& k,
                       const Shape& v) {
  Sizes sizes;
  const bool fits =
      (q.rank() == 3 || q.rank() == 4) && k.rank() == q.rank() && v.rank() == q.rank();
  if (!fits) {
    return failure(Code::InvalidModel,
                   "Q, K and V have shapes {}, {} and {}, expected all of rank 3 or all of rank 4",
                   q.to_string(), k.to_string(), v.to_string());
  }
  sizes.batch = q[0];
  sizes.is_packed = q.rank() == 3;
  if (sizes.is_packed) {
    sizes.heads = attributes.get_int("q_num_heads", 0);
    sizes.kv_heads = attributes.get_int("kv_num_heads", 0);
    SDX_TRY(check_heads("q_num_heads", sizes.heads, q[2]));
    SDX_TRY(check_heads("kv_num_heads", sizes.kv_heads, k[2]));
    SDX_TRY(check_heads("kv_num_heads", sizes.kv_heads, v[2]));
    sizes.head_size = part_of(q[2], sizes.heads);
    sizes.value_size = part_of(v[2], sizes.kv_heads);
  } else {
    sizes.heads = q[1];
    sizes.kv_heads = is_known(k[1]) ? k[1] : v[1];
    sizes.head_size = q[3];
    sizes.value_size = v[3];
  }
  const int axis = q.rank() - 2;
  sizes.queries = q[axis];
  sizes.keys = is_known(k[axis]) ? k[axis] : v[axis];
  const Dim key_size = sizes.is_packed ? part_of(k[2], sizes.kv_heads) : k[3];
  const bool is_grouped = !is_known(sizes.heads) || !is_known(sizes.kv_heads) ||
                          (sizes.kv_heads > 0 && sizes.heads % sizes.kv_heads == 0);
  if (differ(q[0], k[0]) || differ(q[0], v[0]) || differ(k[axis], v[axis]) ||
      differ(sizes.head_size, key_size) || !is_grouped ||
      (!sizes.is_packed && differ(k[1], v[1]))) {
    return failure(Code::InvalidModel, "Q, K and V of shapes {}, {} and {} do not fit together",
                   q.to_string(), k.to_string(), v.to_string());
  }
  return sizes;
}

Status add_past(const InferContext& context, Sizes& sizes) {
  if (context.has_input(kPastKey) != context.has_input(kPastValue)) {
    return context.error("past_key and past_value should be given together");
  }
  if (!context.has_input(kPastKey)) return {};
  if (context.has_input(kLengths)) {
    return context.error("nonpad_kv_seqlen does not go with past_key");
  }
  sizes.past = kUnknownDim;
  for (const std::size_t i : {kPastKey, kPastValue}) {
    const Shape* past = context.shape(i);
    if (past == nullptr) continue;
    const Dim size = i == kPastKey ? sizes.head_size : sizes.value_size;
    if (past->rank() != 4 || differ((*past)[0], sizes.batch) ||
        differ((*past)[1], sizes.kv_heads) || differ((*past)[3], size) ||
        differ((*past)[2], sizes.past)) {
      return context.error("'{}' has shape {}, expected [{}, {}, {}, {}]", context.input_name(i),
                           past->to_string(), sizes.batch, sizes.kv_heads, sizes.past, size);
    }
    sizes.past = (*past)[2];
  }
  return {};
}

Status check_mask(const InferContext& context, const Sizes& sizes) {
  const Shape* mask = context.shape(kMask);
  if (mask == nullptr) return {};
  const Shape target{sizes.batch, sizes.heads, sizes.queries, sizes.total()};
  bool fits = mask->rank() >= 1 && mask->rank() <= 4;
  for (int i = 0; fits && i < mask->rank(); ++i) {
    const Dim dim = (*mask)[i];
    const Dim wanted = target[4 - mask->rank() + i];
    // The last dimension may be shorter: the rest is masked.
    const bool is_last = i == mask->rank() - 1;
    fits = !differ(dim, wanted) || (is_last ? dim < wanted : dim == 1);
  }
  if (fits) return {};
  return context.error("'{}' of shape {} does not broadcast to {}", context.input_name(kMask),
                       mask->to_string(), target.to_string());
}

Status infer_attention(InferContext& context) {
  const Shape* q = context.shape(kQ);
  const Shape* k = context.shape(kK);
  const Shape* v = context.shape(kV);
  for (std::size_t i = 1; i < 4; ++i) context.set_dtype(i, context.dtype(i == 2 ? kV : kQ));
  for (const std::string_view side : {"left_window_size", "right_window_size"}) {
    const std::int64_t size = context.attributes().get_int(side, -1);
    if (size < -1) return context.error("{} is {}, expected -1 or more", side, size);
  }
  if (q == nullptr || k == nullptr || v == nullptr) return {};
  SDX_ASSIGN(Sizes sizes, sizes_of(context.attributes(), *q, *k, *v));
  SDX_TRY(add_past(context, sizes));
  SDX_TRY(check_mask(context, sizes));
  if (const Shape* lengths = context.shape(kLengths)) {
    if (lengths->rank() != 1 || differ((*lengths)[0], sizes.batch)) {
      return context.error("'{}' has shape {}, expected [{}]", context.input_name(kLengths),
                           lengths->to_string(), sizes.batch);
    }
  }
  const bool is_ready = is_known(sizes.heads) && is_known(sizes.value_size);
  const Dim hidden = is_ready ? sizes.heads * sizes.value_size : kUnknownDim;
  context.set_shape(0, sizes.is_packed
                           ? Shape{sizes.batch, sizes.queries, hidden}
                           : Shape{sizes.batch, sizes.heads, sizes.queries, sizes.value_size});
  context.set_shape(1, {sizes.batch, sizes.kv_heads, sizes.total(), sizes.head_size});
  context.set_shape(2, {sizes.batch, sizes.kv_heads, sizes.total(), sizes.value_size});
  context.set_shape(3, {sizes.batch, sizes.heads, sizes.queries, sizes.total()});
  return {};
}

/// The masks of one node, applied head by head.
template <typename C>
class Masks {
 public:
  static Result<Masks> create(EvalContext& context, const Sizes& sizes) {
    Masks masks(sizes);
    const Attributes& attributes = context.attributes();
    masks.is_causal_ = attributes.get_int("is_causal", 0) != 0;
    masks.left_ = attributes.get_int("left_window_size", -1);
    masks.right_ = attributes.get_int("right_window_size", -1);
    if (const Tensor* mask = context.tensor_or_null(kMask)) {
      if (mask->dtype() == DType::Bool) {
        masks.allowed_ = mask->values<std::uint8_t>().data();
      } else {
        SDX_ASSIGN(masks.bias_, Elements<C>::of(*mask));
      }
      masks.set_strides(mask->shape());
    }
    masks.lengths_ = context.ints(kLengths);
    for (const std::int64_t length : masks.lengths_) {
      if (length >= 0 && length <= sizes.total()) continue;
      return failure(Code::Runtime, "nonpad_kv_seqlen holds {}, expected 0 to {}", length,
                     sizes.total());
    }
    return masks;
  }

  void apply(std::int64_t b, std::int64_t h, C* scores) const {
    const auto item = static_cast<std::size_t>(b);
    const std::int64_t valid =
        lengths_.empty() ? keys_ : std::clamp<std::int64_t>(lengths_[item], 0, keys_);
    const std::int64_t offset = lengths_.empty() ? past_ : lengths_[item] - queries_;
    for (std::int64_t i = 0; i < queries_; ++i, scores += keys_) {
      if (is_there_) add_mask(b, h, i, scores);
      const std::int64_t position = i + offset;
      std::int64_t end = valid;
      if (is_causal_) end = std::min(end, position + 1);
      if (right_ >= 0 && right_ < keys_) end = std::min(end, position + right_ + 1);
      std::int64_t begin = 0;
      if (left_ >= 0 && left_ < position) begin = position - left_;
      begin = std::clamp<std::int64_t>(begin, 0, keys_);
      end = std::clamp<std::int64_t>(end, begin, keys_);
      std::fill(scores, scores + begin, kNone);
      std::fill(scores + end, scores + keys_, kNone);
    }
  }

 private:
  static constexpr C kNone = -std::numeric_limits<C>::infinity();

  explicit Masks(const Sizes& sizes)
      : queries_(sizes.queries), keys_(sizes.total()), past_(sizes.past) {}

  void set_strides(const Shape& shape) {
    is_there_ = true;
    width_ = shape[shape.rank() - 1];
    std::int64_t stride = width_;
    for (int i = shape.rank() - 2, axis = 2; i >= 0; --i, --axis) {
      strides_[static_cast<std::size_t>(axis)] = shape[i] == 1 ? 0 : stride;
      stride *= shape[i];
    }
  }

  void add_mask(std::int64_t b, std::int64_t h, std::int64_t i, C* scores) const {
    const std::int64_t row = b * strides_[0] + h * strides_[1] + i * strides_[2];
    for (std::int64_t j = 0; j < width_; ++j) {
      if (allowed_ != nullptr) {
        if (allowed_[row + j] == 0) scores[j] = kNone;
      } else {
        scores[j] += bias_[row + j];
      }
    }
    std::fill(scores + width_, scores + keys_, kNone);
  }

  std::int64_t queries_;
  std::int64_t keys_;
  std::int64_t past_;
  bool is_causal_ = false;
  std::int64_t left_ = -1;
  std::int64_t right_ = -1;
  bool is_there_ = false;
  const std::uint8_t* allowed_ = nullptr;
  Elements<C> bias_;
  std::int64_t width_ = 0;
  std::array<std::int64_t, 3> strides_{};
  std::vector<std::int64_t> lengths_;
};

template <typename C>
HeadRows<const C> view_of(const C* data, bool is_packed, std::int64_t heads, std::int64_t rows,
                          std::int64_t size) {
  return is_packed ? HeadRows<const C>::rows_first(data, heads, rows, size)
                   : HeadRows<const C>::heads_first(data, heads, rows, size);
}

template <typename C>
Status attention(EvalContext& context) {
  const Attributes& attributes = context.attributes();
  SDX_ASSIGN(Sizes s, sizes_of(attributes, context.tensor(kQ).shape(), context.tensor(kK).shape(),
                               context.tensor(kV).shape()));
  if (context.has_input(kPastKey)) s.past = context.tensor(kPastKey).dim(2);
  SDX_ASSIGN(const auto q, Elements<C>::of(context.tensor(kQ)));
  SDX_ASSIGN(const auto k, Elements<C>::of(context.tensor(kK)));
  SDX_ASSIGN(const auto v, Elements<C>::of(context.tensor(kV)));
  SDX_ASSIGN(const auto past_key, Elements<C>::of(context.tensor_or_null(kPastKey)));
  SDX_ASSIGN(const auto past_value, Elements<C>::of(context.tensor_or_null(kPastValue)));
  SDX_ASSIGN(const auto masks, Masks<C>::create(context, s));
  SDX_ASSIGN(const Tensor keys,
             join_past(past_key.data(), s.past,
                       view_of(k.data(), s.is_packed, s.kv_heads, s.keys, s.head_size), s.batch,
                       s.kv_heads, s.keys, s.head_size));
  SDX_ASSIGN(const Tensor values,
             join_past(past_value.data(), s.past,
                       view_of(v.data(), s.is_packed, s.kv_heads, s.keys, s.value_size), s.batch,
                       s.kv_heads, s.keys, s.value_size));
  SDX_TRY(store_present(context, 1, keys));
  SDX_TRY(store_present(context, 2, values));
  SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
  SDX_ASSIGN(auto scores, Staged<C>::open(context, 3));
  const double fallback = 1.0 / std::sqrt(static_cast<double>(s.head_size));
  const float* given = attributes.get_if<float>("scale");
  AttentionJob<C> job{.batch = s.batch,
                      .heads = s.heads,
                      .kv_heads = s.kv_heads,
                      .queries = s.queries,
                      .keys = s.total(),
                      .head_size = s.head_size,
                      .value_size = s.value_size};
  job.q = view_of(q.data(), s.is_packed, s.heads, s.queries, s.head_size);
  job.k = HeadRows<const C>::heads_first(reinterpret_cast<const C*>(keys.data()), s.kv_heads,
                                         s.total(), s.head_size);
  job.v = HeadRows<const C>::heads_first(reinterpret_cast<const C*>(values.data()), s.kv_heads,
                                         s.total(), s.value_size);
  job.out = s.is_packed ? HeadRows<C>::rows_first(y.data(), s.heads, s.queries, s.value_size)
                        : HeadRows<C>::heads_first(y.data(), s.heads, s.queries, s.value_size);
  job.scale = static_cast<C>(given != nullptr ? static_cast<double>(*given) : fallback);
  job.softcap = static_cast<C>(attributes.get_float("softcap", 0.0F));
  job.scores_out = scores.data();
  job.stage = static_cast<int>(attributes.get_int("qk_matmul_output_mode", 0));
  if (s.heads > 0) {
    SDX_TRY(
        attend<C>(job, [&](std::int64_t b, std::int64_t h, C* row) { masks.apply(b, h, row); }));
  }
  y.commit();
  scores.commit();
  return {};
}

Status evaluate_attention(EvalContext& context) {
  return with_real(context.tensor(kQ).dtype(),
                   [&]<typename C>() -> Status { return attention<C>(context); });
}

constexpr DTypeSet kMaskTypes = kNumericBf16 | set_of(DType::Bool);

constexpr OpSchema kRows[] = {
    {"",
     "Attention",
     23,
     {"TTUvtu>Ttut", kFloatsBf16, kFloatsBf16, kMaskTypes},
     "is_causal:i kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i scale:f softcap:f "
     "softmax_precision:i",
     infer_attention,
     evaluate_attention},
    {"",
     "Attention",
     24,
     {"TTUvtui>Ttut", kFloatsBf16, kFloatsBf16, kMaskTypes},
     "is_causal:i kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i scale:f softcap:f "
     "softmax_precision:i",
     infer_attention,
     evaluate_attention},
    {"",
     "Attention",
     25,
     {"TTUvtui>Ttut", kFloatsBf16, kFloatsBf16, kMaskTypes},
     "is_causal:i kv_num_heads:i left_window_size:i q_num_heads:i qk_matmul_output_mode:i "
     "right_window_size:i scale:f softcap:f softmax_precision:i",
     infer_attention,
     evaluate_attention},
};

}  // namespace

std::span<const OpSchema> attention_schemas() { return kRows; }

}  // namespace sardonyx
