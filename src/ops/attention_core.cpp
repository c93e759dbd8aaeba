#include "ops/attention_core.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/checked.h"
#include "ir/element.h"

namespace sardonyx {

namespace {

template <typename C>
struct HeadScratch {
  C* q;
  C* k;
  C* scores;
};

template <typename C>
void keep_stage(const AttentionJob<C>& job, int stage, std::int64_t b, std::int64_t h,
                const C* scores) {
  if (job.scores_out == nullptr || job.stage != stage) return;
  const std::int64_t size = job.queries * job.keys;
  std::copy_n(scores, size, job.scores_out + (b * job.heads + h) * size);
}

/// scores = scale q k' with the keys transposed in scratch.
template <typename C>
void score_head(const AttentionJob<C>& job, std::int64_t b, std::int64_t h,
                const HeadScratch<C>& scratch) {
  const C* q = job.q.at(b, h);
  for (std::int64_t i = 0; i < job.queries; ++i) {
    for (std::int64_t d = 0; d < job.head_size; ++d) {
      scratch.q[i * job.head_size + d] = q[i * job.q.row_stride + d] * job.scale;
    }
  }
  std::fill_n(scratch.scores, job.queries * job.keys, C{});
  multiply_add<C>({.rows = job.queries,
                   .columns = job.keys,
                   .depth = job.head_size,
                   .a = scratch.q,
                   .a_row = job.head_size,
                   .a_column = 1,
                   .b = scratch.k,
                   .b_row = job.keys,
                   .c = scratch.scores,
                   .c_row = job.keys});
}

template <typename C>
void attend_head(const AttentionJob<C>& job, std::int64_t b, std::int64_t h, ScoreBias<C> bias,
                 const HeadScratch<C>& scratch) {
  score_head(job, b, h, scratch);
  C* scores = scratch.scores;
  keep_stage(job, 0, b, h, scores);
  if (job.softcap > C{0}) {
    for (std::int64_t i = 0; i < job.queries * job.keys; ++i) {
      scores[i] = job.softcap * std::tanh(scores[i] / job.softcap);
    }
  }
  keep_stage(job, 1, b, h, scores);
  bias(b, h, scores);
  keep_stage(job, 2, b, h, scores);
  softmax_rows(scores, job.queries, job.keys, job.sinks != nullptr ? job.sinks + h : nullptr);
  keep_stage(job, 3, b, h, scores);
  if (job.out.data == nullptr) return;
  C* out = job.out.at(b, h);
  for (std::int64_t i = 0; i < job.queries; ++i) {
    std::fill_n(out + i * job.out.row_stride, job.value_size, C{});
  }
  multiply_add<C>({.rows = job.queries,
                   .columns = job.value_size,
                   .depth = job.keys,
                   .a = scores,
                   .a_row = job.keys,
                   .a_column = 1,
                   .b = job.v.at(b, h / (job.heads / job.kv_heads)),
                   .b_row = job.v.row_stride,
                   .c = out,
                   .c_row = job.out.row_stride});
}

}  // namespace

template <typename C>
void softmax_rows(C* scores, std::int64_t rows, std::int64_t columns, const C* sink) {
  constexpr C kNone = -std::numeric_limits<C>::infinity();
  for (std::int64_t i = 0; i < rows; ++i, scores += columns) {
    C best = kNone;
    for (std::int64_t j = 0; j < columns; ++j) best = std::max(best, scores[j]);
    if (best == kNone) {
      std::fill_n(scores, columns, C{});
      continue;
    }
    if (sink != nullptr) best = std::max(best, *sink);
    double sum = sink != nullptr ? std::exp(static_cast<double>(*sink - best)) : 0.0;
    for (std::int64_t j = 0; j < columns; ++j) {
      scores[j] = std::exp(scores[j] - best);
      sum += static_cast<double>(scores[j]);
    }
    const C inverse = static_cast<C>(1.0 / sum);
    for (std::int64_t j = 0; j < columns; ++j) scores[j] *= inverse;
  }
}

template <typename C>
Status attend(const AttentionJob<C>& job, ScoreBias<C> bias) {
  const auto score_count = checked_multiply(job.queries, job.keys);
  if (!score_count) {
    return failure(Code::OutOfMemory, "{} queries by {} keys are too many", job.queries, job.keys);
  }
  SDX_ASSIGN(Tensor q, make_scratch<C>(job.queries * job.head_size));
  SDX_ASSIGN(Tensor k, make_scratch<C>(job.keys * job.head_size));
  SDX_ASSIGN(Tensor scores, make_scratch<C>(*score_count));
  const HeadScratch<C> scratch{reinterpret_cast<C*>(q.mutable_data()),
                               reinterpret_cast<C*>(k.mutable_data()),
                               reinterpret_cast<C*>(scores.mutable_data())};
  const std::int64_t share = job.heads / job.kv_heads;
  for (std::int64_t b = 0; b < job.batch; ++b) {
    for (std::int64_t h = 0; h < job.heads; ++h) {
      if (h % share == 0) {
        const C* keys = job.k.at(b, h / share);
        for (std::int64_t d = 0; d < job.head_size; ++d) {
          for (std::int64_t j = 0; j < job.keys; ++j) {
            scratch.k[d * job.keys + j] = keys[j * job.k.row_stride + d];
          }
        }
      }
      attend_head(job, b, h, bias, scratch);
    }
  }
  return {};
}

template <typename C>
Result<Tensor> join_past(const C* past, std::int64_t past_rows, const HeadRows<const C>& rows,
                         std::int64_t batch, std::int64_t heads, std::int64_t row_count,
                         std::int64_t size) {
  SDX_ASSIGN(Tensor joined, make_scratch<C>(batch * heads * (past_rows + row_count) * size));
  auto* to = reinterpret_cast<C*>(joined.mutable_data());
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      if (past_rows > 0) {
        to = std::copy_n(past + (b * heads + h) * past_rows * size, past_rows * size, to);
      }
      for (std::int64_t i = 0; i < row_count; ++i) {
        to = std::copy_n(rows.at(b, h) + i * rows.row_stride, size, to);
      }
    }
  }
  return joined;
}

Status store_present(EvalContext& context, std::size_t output, const Tensor& elements) {
  if (!context.has_output(output)) return {};
  SDX_ASSIGN(Tensor * present, context.allocate(output));
  SDX_ASSIGN(const Tensor converted, to_dtype(elements, present->dtype()));
  std::copy_n(converted.data(), present->byte_size(), present->mutable_data());
  return {};
}

template Result<Tensor> join_past<float>(const float*, std::int64_t, const HeadRows<const float>&,
                                         std::int64_t, std::int64_t, std::int64_t, std::int64_t);
template Result<Tensor> join_past<double>(const double*, std::int64_t,
                                          const HeadRows<const double>&, std::int64_t, std::int64_t,
                                          std::int64_t, std::int64_t);
template void softmax_rows<float>(float*, std::int64_t, std::int64_t, const float*);
template void softmax_rows<double>(double*, std::int64_t, std::int64_t, const double*);
template Status attend<float>(const AttentionJob<float>&, ScoreBias<float>);
template Status attend<double>(const AttentionJob<double>&, ScoreBias<double>);

Status check_heads(std::string_view what, std::int64_t heads, Dim size) {
  if (heads >= 1 && (!is_known(size) || size % heads == 0)) return {};
  return failure(Code::InvalidModel, "{} is {}, which does not divide a size of {}", what, heads,
                 size);
}

}  // namespace sardonyx
