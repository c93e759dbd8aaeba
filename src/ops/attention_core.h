#pragma once

#include "base/function_ref.h"
#include "ops/dense.h"

namespace sardonyx {

/// Rows of one head of one batch item inside a larger tensor; the elements of a row are dense.
template <typename C>
struct HeadRows {
  C* data = nullptr;
  std::int64_t batch_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t row_stride = 0;

  C* at(std::int64_t batch, std::int64_t head) const {
    return data + batch * batch_stride + head * head_stride;
  }
  /// [batch, heads, rows, size].
  static HeadRows heads_first(C* data, std::int64_t heads, std::int64_t rows, std::int64_t size) {
    return {data, heads * rows * size, rows * size, size};
  }
  /// [batch, rows, heads * size].
  static HeadRows rows_first(C* data, std::int64_t heads, std::int64_t rows, std::int64_t size) {
    return {data, heads * rows * size, size, heads * size};
  }
};

/// softmax(cap(scale q k') + bias) v for every head; query heads share key heads in groups.
template <typename C>
struct AttentionJob {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t head_size = 0;
  std::int64_t value_size = 0;
  HeadRows<const C> q{};
  HeadRows<const C> k{};
  HeadRows<const C> v{};
  HeadRows<C> out{};
  C scale{1};
  /// Scores become cap * tanh(score / cap) when it is above zero.
  C softcap{0};
  /// One more logit per head that takes part in the sum alone; null without.
  const C* sinks = nullptr;
  /// Where the scores [batch, heads, queries, keys] go at one stage: 0 as multiplied, 1 capped,
  /// 2 with bias, 3 after softmax. Null when nobody wants them.
  C* scores_out = nullptr;
  int stage = 0;
};

/// Adds biases and masks (minus infinity) to the scores [queries, keys] of one head.
template <typename C>
using ScoreBias = FunctionRef<void(std::int64_t batch, std::int64_t head, C* scores)>;

/// Numbers  a row without a key to attend to (all minus infinity) gives zeros.
/// Errors   OutOfMemory.
template <typename C>
Status attend(const AttentionJob<C>& job, ScoreBias<C> bias);

/// In place softmax of rows; `sink` may be null.
template <typename C>
void softmax_rows(C* scores, std::int64_t rows, std::int64_t columns, const C* sink);

/// Past and new rows of each head one after the other: [batch, heads, past_rows + row_count, size].
/// `past` may be null when there are no past rows.
template <typename C>
Result<Tensor> join_past(const C* past, std::int64_t past_rows, const HeadRows<const C>& rows,
                         std::int64_t batch, std::int64_t heads, std::int64_t row_count,
                         std::int64_t size);

/// Makes output `output` these elements; nothing when nobody wants it.
Status store_present(EvalContext& context, std::size_t output, const Tensor& elements);

/// Refuses head counts that do not divide `size`, or zero.
Status check_heads(std::string_view what, std::int64_t heads, Dim size);

}  // namespace sardonyx
