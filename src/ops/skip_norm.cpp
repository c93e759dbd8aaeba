#include <algorithm>

#include "ir/element.h"
#include "ops/convolve.h"
#include "ops/families.h"
#include "ops/fused_activation.h"
#include "ops/infer_context.h"
#include "ops/normalize.h"

namespace sardonyx {

namespace {

double epsilon_of(const EvalContext& context, float fallback) {
  return static_cast<double>(context.attributes().get_float("epsilon", fallback));
}

Status check_vector(const InferContext& context, std::size_t input, Dim size) {
  const Shape* shape = context.shape(input);
  if (shape == nullptr) return {};
  if (shape->rank() == 1 && !differ((*shape)[0], size)) return {};
  return context.error("'{}' has shape {}, expected [{}]", context.input_name(input),
                       shape->to_string(), size);
}

/// Inputs after `input` and `skip`: gamma, beta (not for the root mean square), bias.
Status infer_skip_norm(InferContext& context) {
  context.set_dtype(1, DType::Float32);
  context.set_dtype(2, DType::Float32);
  const Shape* x = context.shape(0);
  if (x == nullptr) return {};
  if (x->rank() < 2) {
    return context.error("'{}' has shape {}, expected 2 dimensions or more", context.input_name(0),
                         x->to_string());
  }
  if (const Shape* skip = context.shape(1)) {
    bool fits = skip->rank() <= x->rank();
    for (int i = 0; fits && i < skip->rank(); ++i) {
      fits = (*skip)[i] == 1 || !differ((*skip)[i], (*x)[x->rank() - skip->rank() + i]);
    }
    if (!fits) {
      return context.error("'{}' of shape {} does not broadcast to {}", context.input_name(1),
                           skip->to_string(), x->to_string());
    }
  }
  for (std::size_t i = 2; i < 5; ++i) SDX_TRY(check_vector(context, i, (*x)[x->rank() - 1]));
  Shape rows = *x;
  rows[rows.rank() - 1] = 1;
  context.set_shape(0, *x);
  context.set_shape(1, rows);
  context.set_shape(2, rows);
  context.set_shape(3, *x);
  return {};
}

/// x + skip (repeated) + bias (one per column).
Result<Tensor> residual_sum(const EvalContext& context, const Tensor* bias) {
  const Tensor& x = context.tensor(0);
  const Tensor& skip = context.tensor(1);
  SDX_ASSIGN(const auto a, Elements<float>::of(x));
  SDX_ASSIGN(const auto b, Elements<float>::of(skip));
  SDX_ASSIGN(const auto c, Elements<float>::of(bias));
  const std::int64_t count = x.element_count();
  const std::int64_t size = x.dim(x.rank() - 1);
  SDX_ASSIGN(Tensor sum, make_scratch<float>(count));
  float* to = sum.mutable_values<float>().data();
  BatchWalk walk(x.shape());
  walk.add(skip.shape(), 1);
  for (std::int64_t i = 0; i < count; ++i, walk.next()) {
    to[i] = a[i] + b[walk.offset(0)] + (c ? c[i % size] : 0.0F);
  }
  return sum;
}

template <bool is_centred>
Status evaluate_skip_norm(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const std::int64_t size = x.dim(x.rank() - 1);
  const Tensor* beta = is_centred ? context.tensor_or_null(3) : nullptr;
  const Tensor* bias = context.tensor_or_null(is_centred ? 4 : 3);
  const double epsilon = epsilon_of(context, 1e-12F);
  SDX_ASSIGN(const Tensor sum, residual_sum(context, bias));
  SDX_ASSIGN(const auto gamma, Elements<float>::of(context.tensor(2)));
  SDX_ASSIGN(const auto shift, Elements<float>::of(beta));
  SDX_ASSIGN(auto y, Staged<float>::open(context, 0));
  SDX_ASSIGN(auto mean, Staged<float>::open(context, 1));
  SDX_ASSIGN(auto inverse, Staged<float>::open(context, 2));
  SDX_ASSIGN(auto total, Staged<float>::open(context, 3));
  const float* values = sum.values<float>().data();
  const std::int64_t rows = size == 0 ? 0 : x.element_count() / size;
  for (std::int64_t i = 0; i < rows; ++i) {
    const Moments moments = moments_of(values + i * size, size, is_centred);
    if (mean) mean[i] = static_cast<float>(moments.mean);
    if (inverse) inverse[i] = static_cast<float>(moments.inverse_deviation(epsilon));
    if (!y) continue;
    standardize<float>(values + i * size, size, moments, epsilon, gamma.data(), shift.data(),
                       y.data() + i * size);
  }
  if (total) std::copy_n(values, x.element_count(), total.data());
  for (auto* output : {&y, &mean, &inverse, &total}) output->commit();
  return {};
}

Status infer_grouped(InferContext& context) {
  const Shape* x = context.shape(0);
  if (x == nullptr) return {};
  const bool is_last = context.attributes().get_int("channels_last", 1) != 0;
  const std::int64_t groups = context.attributes().get_int("groups", 1);
  if (x->rank() < 2) {
    return context.error("'{}' has shape {}, expected 4 dimensions", context.input_name(0),
                         x->to_string());
  }
  const Dim channels = (*x)[is_last ? x->rank() - 1 : 1];
  if (groups < 1 || (is_known(channels) && channels % groups != 0)) {
    return context.error("{} channels do not split into {} groups", channels, groups);
  }
  SDX_TRY(check_vector(context, 1, channels));
  SDX_TRY(check_vector(context, 2, channels));
  SDX_TRY(check_vector(context, 4, channels));
  context.set_shape(0, *x);
  context.set_shape(1, *x);
  return {};
}

/// Adds skip (like x, or one per batch item and channel) and bias to x, channels first.
Status add_skip(const EvalContext& context, bool is_last, std::int64_t channels, std::int64_t size,
                float* x) {
  if (!context.has_input(3)) return {};
  const std::int64_t batch = context.tensor(0).dim(0);
  const Tensor& skip = context.tensor(3);
  SDX_ASSIGN(auto values, Elements<float>::of(skip));
  SDX_ASSIGN(const auto bias, Elements<float>::of(context.tensor_or_null(4)));
  const bool is_full = skip.element_count() == batch * channels * size;
  if (!is_full && skip.element_count() != batch * channels) {
    return context.error("skip has shape {}, expected {} or [{}, {}]", skip.shape().to_string(),
                         context.tensor(0).shape().to_string(), batch, channels);
  }
  if (is_full && is_last) {
    SDX_ASSIGN(values, channels_first(values, context.tensor(0).shape()));
  }
  for (std::int64_t i = 0; i < batch * channels; ++i) {
    for (std::int64_t k = 0; k < size; ++k) {
      x[i * size + k] += values[is_full ? i * size + k : i];
      if (bias) x[i * size + k] += bias[i % channels];
    }
  }
  return {};
}

Status evaluate_grouped(EvalContext& context) {
  const Tensor& input = context.tensor(0);
  const Attributes& attributes = context.attributes();
  const bool is_last = attributes.get_int("channels_last", 1) != 0;
  const Shape first = is_last ? channels_first_shape(input.shape()) : input.shape();
  const std::int64_t groups = attributes.get_int("groups", 1);
  const std::int64_t channels = first[1];
  const std::int64_t size = first.product(2, first.rank());
  const std::int64_t count = input.element_count();
  SDX_ASSIGN(auto x, Elements<float>::of(input));
  if (is_last) {
    SDX_ASSIGN(x, channels_first(x, input.shape()));
  }
  SDX_ASSIGN(const auto gamma, Elements<float>::of(context.tensor(1)));
  SDX_ASSIGN(const auto beta, Elements<float>::of(context.tensor(2)));
  SDX_ASSIGN(auto y, Staged<float>::open(context, 0));
  SDX_ASSIGN(auto sum, Staged<float>::open(context, 1));
  SDX_ASSIGN(Tensor scratch, make_scratch<float>(count));
  float* values = scratch.mutable_values<float>().data();
  std::copy_n(x.data(), count, values);
  SDX_TRY(add_skip(context, is_last, channels, size, values));
  const auto store = [&](Staged<float>& output) {
    if (!output) return;
    if (is_last) {
      channels_last(values, first[0], channels, size, output.data());
    } else {
      std::copy_n(values, count, output.data());
    }
    output.commit();
  };
  store(sum);
  const std::int64_t share = channels / groups * size;
  for (std::int64_t i = 0; i < first[0] * groups; ++i) {
    const Moments moments = moments_of(values + i * share, share, true);
    standardize<float>(values + i * share, share, moments, epsilon_of(context, 1e-5F), nullptr,
                       nullptr, values + i * share);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t c = i / size % channels;
    values[i] = values[i] * gamma[c] + beta[c];
  }
  if (attributes.get_int("activation", 0) != 0) {
    SDX_ASSIGN(const Activation silu, Activation::of("silu", nullptr, nullptr));
    silu.apply(values, count);
  }
  store(y);
  return {};
}

Status infer_embed(InferContext& context) {
  context.set_dtype(1, DType::Int32);
  const Shape* ids = context.shape(0);
  const Shape* words = context.shape(2);
  if (ids != nullptr && ids->rank() != 2) {
    return context.error("'{}' has shape {}, expected [batch, length]", context.input_name(0),
                         ids->to_string());
  }
  for (const std::size_t i : {2U, 3U, 4U}) {
    const Shape* table = context.shape(i);
    if (table == nullptr || table->rank() == 2) continue;
    return context.error("'{}' has shape {}, expected [rows, hidden]", context.input_name(i),
                         table->to_string());
  }
  const Dim batch = ids != nullptr ? (*ids)[0] : kUnknownDim;
  const Dim length = ids != nullptr ? (*ids)[1] : kUnknownDim;
  const Dim hidden = words != nullptr ? (*words)[1] : kUnknownDim;
  for (const std::size_t i : {3U, 4U}) {
    const Shape* table = context.shape(i);
    if (table == nullptr || !differ((*table)[1], hidden)) continue;
    return context.error("'{}' has shape {}, expected {} columns", context.input_name(i),
                         table->to_string(), hidden);
  }
  SDX_TRY(check_vector(context, 5, hidden));
  SDX_TRY(check_vector(context, 6, hidden));
  context.set_shape(0, {batch, length, hidden});
  context.set_shape(1, {batch});
  context.set_shape(2, {batch, length, hidden});
  return {};
}

/// Adds row `id` of a table.
Status add_row(const EvalContext& context, std::string_view what, const Elements<float>& table,
               std::int64_t rows, std::int64_t id, std::int64_t hidden, float* to) {
  if (id < 0 || id >= rows) return context.error("{} {} is outside [0, {})", what, id, rows);
  const float* from = table.data() + id * hidden;
  for (std::int64_t i = 0; i < hidden; ++i) to[i] += from[i];
  return {};
}

Status embed(EvalContext& context, float* sums) {
  const Tensor& words = context.tensor(2);
  const std::int64_t batch = context.tensor(0).dim(0);
  const std::int64_t length = context.tensor(0).dim(1);
  const std::int64_t hidden = words.dim(1);
  const auto ids = context.ints(0);
  const auto segments = context.ints(1);
  const auto positions = context.ints(8);
  const bool has_segments = context.has_input(1) && context.has_input(4);
  const auto count = static_cast<std::size_t>(batch * length);
  const bool is_shared = positions.size() == static_cast<std::size_t>(length);
  if ((has_segments && segments.size() != count) ||
      (context.has_input(8) && positions.size() != count && !is_shared)) {
    return context.error("{} segment ids and {} position ids for {} words", segments.size(),
                         positions.size(), count);
  }
  SDX_ASSIGN(const auto word_table, Elements<float>::of(words));
  SDX_ASSIGN(const auto position_table, Elements<float>::of(context.tensor(3)));
  SDX_ASSIGN(const auto segment_table, Elements<float>::of(context.tensor_or_null(4)));
  std::fill_n(sums, batch * length * hidden, 0.0F);
  for (std::size_t i = 0; i < count; ++i) {
    float* to = sums + static_cast<std::int64_t>(i) * hidden;
    const auto t = static_cast<std::int64_t>(i) % length;
    SDX_TRY(add_row(context, "word id", word_table, words.dim(0), ids[i], hidden, to));
    const std::int64_t position =
        positions.empty() ? t : positions[is_shared ? static_cast<std::size_t>(t) : i];
    SDX_TRY(add_row(context, "position", position_table, context.tensor(3).dim(0), position, hidden,
                    to));
    if (!has_segments) continue;
    SDX_TRY(add_row(context, "segment id", segment_table, context.tensor(4).dim(0), segments[i],
                    hidden, to));
  }
  return {};
}

/// Per batch item the number of words that the mask keeps.
Status write_mask_index(EvalContext& context) {
  SDX_ASSIGN(Tensor * index, context.allocate(1));
  if (index == nullptr) return {};
  const auto to = index->mutable_values<std::int32_t>();
  std::fill(to.begin(), to.end(), 0);
  const auto mask = context.ints(7);
  if (mask.empty()) return {};
  const auto length = static_cast<std::size_t>(context.tensor(0).dim(1));
  if (mask.size() != to.size() * length) {
    return context.error("the mask has {} elements, expected {}", mask.size(), to.size() * length);
  }
  for (std::size_t i = 0; i < mask.size(); ++i) to[i / length] += mask[i] == 1;
  return {};
}

Status evaluate_embed(EvalContext& context) {
  const std::int64_t hidden = context.tensor(2).dim(1);
  const std::int64_t rows = context.tensor(0).element_count();
  SDX_ASSIGN(Tensor scratch, make_scratch<float>(rows * hidden));
  float* sums = scratch.mutable_values<float>().data();
  SDX_TRY(embed(context, sums));
  SDX_ASSIGN(const auto gamma, Elements<float>::of(context.tensor(5)));
  SDX_ASSIGN(const auto beta, Elements<float>::of(context.tensor(6)));
  SDX_ASSIGN(auto y, Staged<float>::open(context, 0));
  SDX_ASSIGN(auto total, Staged<float>::open(context, 2));
  for (std::int64_t i = 0; i < rows && y; ++i) {
    const Moments moments = moments_of(sums + i * hidden, hidden, true);
    standardize<float>(sums + i * hidden, hidden, moments, epsilon_of(context, 1e-12F),
                       gamma.data(), beta.data(), y.data() + i * hidden);
  }
  if (total) std::copy_n(sums, rows * hidden, total.data());
  y.commit();
  total.commit();
  return write_mask_index(context);
}

constexpr DTypeSet kFloat = set_of(DType::Float32, DType::Float16, DType::BFloat16);
constexpr DTypeSet kInt32 = set_of(DType::Int32);

constexpr OpSchema kRows[] = {
    {"com.microsoft",
     "SkipLayerNormalization",
     1,
     {"TTTtt>Tfft", kFloat},
     "epsilon:f",
     infer_skip_norm,
     evaluate_skip_norm<true>},
    {"com.microsoft",
     "SkipSimplifiedLayerNormalization",
     1,
     {"TTTt>Tfft", kFloat},
     "epsilon:f",
     infer_skip_norm,
     evaluate_skip_norm<false>},
    {"com.microsoft",
     "GroupNorm",
     1,
     {"TUU>T", kFloat, kFloat},
     "activation:i! channels_last:i epsilon:f groups:i!",
     infer_grouped,
     evaluate_grouped},
    {"com.microsoft",
     "SkipGroupNorm",
     1,
     {"TUUTt>Tt", kFloat, kFloat},
     "activation:i! channels_last:i epsilon:f groups:i!",
     infer_grouped,
     evaluate_grouped},
    {"com.microsoft",
     "EmbedLayerNormalization",
     1,
     {"UuTTtTTuu>Tut", kFloat, kInt32},
     "epsilon:f mask_index_type:i",
     infer_embed,
     evaluate_embed},
};

}  // namespace

std::span<const OpSchema> skip_norm_schemas() { return kRows; }

}  // namespace sardonyx
