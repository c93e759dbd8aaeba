#include <algorithm>

#include "ops/families.h"
#include "ops/recurrent.h"

namespace sardonyx {

namespace {

/// W [directions, gates, input] and R [directions, gates, hidden].
template <RecurrentKind kind>
Status infer_rnn(InferContext& context) {
  const Shape* x = context.shape(0);
  const Shape* w = context.shape(1);
  const Shape* r = context.shape(2);
  SDX_ASSIGN(const RecurrentPlan plan, recurrent_plan(kind, context.attributes()));
  const Dim hidden = r != nullptr && r->rank() == 3 ? (*r)[2] : kUnknownDim;
  const Dim input = x != nullptr && x->rank() == 3 ? (*x)[2] : kUnknownDim;
  const Dim gates = is_known(hidden) ? gate_count(kind) * hidden : kUnknownDim;
  for (const Shape* shape : {w, r}) {
    if (shape == nullptr) continue;
    const bool fits = shape->rank() == 3 && !differ((*shape)[0], plan.directions) &&
                      !differ((*shape)[1], gates) && (shape == r || !differ((*shape)[2], input));
    if (fits) continue;
    return context.error("'{}' has shape {}, expected [{}, {}, {}]",
                         context.input_name(shape == w ? 1 : 2), shape->to_string(),
                         plan.directions, gates, shape == w ? input : hidden);
  }
  return infer_recurrent(context, kind, hidden);
}

/// Dense weights, transposed once so that products run along rows.
template <typename C>
class DenseWeights final : public RecurrentWeights<C> {
 public:
  static Result<DenseWeights> create(const RecurrentPlan& plan, const C* w, const C* r) {
    DenseWeights weights(plan);
    SDX_ASSIGN(weights.input_, make_scratch<C>(plan.input * plan.gates()));
    SDX_ASSIGN(weights.state_, make_scratch<C>(plan.hidden * plan.gates()));
    transpose_matrix(w, plan.gates(), plan.input,
                     reinterpret_cast<C*>(weights.input_.mutable_data()));
    transpose_matrix(r, plan.gates(), plan.hidden,
                     reinterpret_cast<C*>(weights.state_.mutable_data()));
    return weights;
  }

  Status multiply_input(const C* x, std::int64_t rows, C* out) override {
    multiply(x, rows, input_size_, input_, 0, gates_, out);
    return {};
  }
  Status multiply_state(const C* h, std::int64_t rows, std::int64_t begin, std::int64_t end,
                        C* out) override {
    multiply(h, rows, hidden_, state_, begin, end, out);
    return {};
  }

 private:
  explicit DenseWeights(const RecurrentPlan& plan)
      : input_size_(plan.input), hidden_(plan.hidden), gates_(plan.gates()) {}

  void multiply(const C* x, std::int64_t rows, std::int64_t depth, const Tensor& weight,
                std::int64_t begin, std::int64_t end, C* out) const {
    std::fill_n(out, rows * (end - begin), C{});
    multiply_add<C>({.rows = rows,
                     .columns = end - begin,
                     .depth = depth,
                     .a = x,
                     .a_row = depth,
                     .a_column = 1,
                     .b = reinterpret_cast<const C*>(weight.data()) + begin,
                     .b_row = gates_,
                     .c = out,
                     .c_row = end - begin});
  }

  std::int64_t input_size_;
  std::int64_t hidden_;
  std::int64_t gates_;
  Tensor input_;
  Tensor state_;
};

template <typename C>
Status run_recurrent(EvalContext& context, RecurrentPlan plan) {
  const Shape& shape = context.tensor(0).shape();
  plan.steps = shape[plan.is_batch_first ? 1 : 0];
  plan.batch = shape[plan.is_batch_first ? 0 : 1];
  plan.input = shape[2];
  plan.hidden = context.tensor(2).dim(2);
  SDX_ASSIGN(const auto x, Elements<C>::of(context.tensor(0)));
  SDX_ASSIGN(const auto w, Elements<C>::of(context.tensor(1)));
  SDX_ASSIGN(const auto r, Elements<C>::of(context.tensor(2)));
  SDX_ASSIGN(const auto bias, Elements<C>::of(context.tensor_or_null(3)));
  SDX_ASSIGN(const auto initial_h, Elements<C>::of(context.tensor_or_null(5)));
  SDX_ASSIGN(const auto initial_c, Elements<C>::of(context.tensor_or_null(6)));
  SDX_ASSIGN(const auto peephole, Elements<C>::of(context.tensor_or_null(7)));
  SDX_ASSIGN(auto lengths, sequence_lengths(context, plan));
  SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
  SDX_ASSIGN(auto y_h, Staged<C>::open(context, 1));
  SDX_ASSIGN(auto y_c, Staged<C>::open(context, 2));
  const RecurrentInputs<C> inputs{.x = x.data(),
                                  .bias = bias.data(),
                                  .initial_h = initial_h.data(),
                                  .initial_c = initial_c.data(),
                                  .peephole = peephole.data(),
                                  .lengths = std::move(lengths)};
  const RecurrentOutputs<C> outputs{y.data(), y_h.data(), y_c.data()};
  for (std::int64_t d = 0; d < plan.directions; ++d) {
    SDX_ASSIGN(auto weights, DenseWeights<C>::create(plan, w.data() + d * plan.gates() * plan.input,
                                                     r.data() + d * plan.gates() * plan.hidden));
    SDX_TRY(run_direction<C>(plan, d, weights, inputs, outputs));
  }
  y.commit();
  y_h.commit();
  y_c.commit();
  return {};
}

template <RecurrentKind kind>
Status evaluate_rnn(EvalContext& context) {
  SDX_ASSIGN(const RecurrentPlan plan, recurrent_plan(kind, context.attributes()));
  return with_real(context.tensor(0).dtype(),
                   [&]<typename C>() -> Status { return run_recurrent<C>(context, plan); });
}

constexpr DTypeSet kInt32 = set_of(DType::Int32);

#define SDX_RNN_ATTRIBUTES \
  "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s hidden_size:i"

constexpr OpSchema rnn_row(int since, const char* attributes, DTypeSet floats) {
  return {"",
          "RNN",
          since,
          {"TTTtut>tt", floats, kInt32},
          attributes,
          infer_rnn<RecurrentKind::Rnn>,
          evaluate_rnn<RecurrentKind::Rnn>};
}
constexpr OpSchema gru_row(int since, const char* attributes, DTypeSet floats) {
  return {"",
          "GRU",
          since,
          {"TTTtut>tt", floats, kInt32},
          attributes,
          infer_rnn<RecurrentKind::Gru>,
          evaluate_rnn<RecurrentKind::Gru>};
}
constexpr OpSchema lstm_row(int since, const char* attributes, DTypeSet floats) {
  return {"",
          "LSTM",
          since,
          {"TTTtuttt>ttt", floats, kInt32},
          attributes,
          infer_rnn<RecurrentKind::Lstm>,
          evaluate_rnn<RecurrentKind::Lstm>};
}

constexpr OpSchema kRows[] = {
    rnn_row(1, SDX_RNN_ATTRIBUTES " output_sequence:i", kFloats),
    rnn_row(7, SDX_RNN_ATTRIBUTES, kFloats),
    rnn_row(14, SDX_RNN_ATTRIBUTES " layout:i", kFloats),
    rnn_row(22, SDX_RNN_ATTRIBUTES " layout:i", kFloatsBf16),
    gru_row(1, SDX_RNN_ATTRIBUTES " output_sequence:i", kFloats),
    gru_row(3, SDX_RNN_ATTRIBUTES " linear_before_reset:i output_sequence:i", kFloats),
    gru_row(7, SDX_RNN_ATTRIBUTES " linear_before_reset:i", kFloats),
    gru_row(14, SDX_RNN_ATTRIBUTES " layout:i linear_before_reset:i", kFloats),
    gru_row(22, SDX_RNN_ATTRIBUTES " layout:i linear_before_reset:i", kFloatsBf16),
    lstm_row(1, SDX_RNN_ATTRIBUTES " input_forget:i output_sequence:i", kFloats),
    lstm_row(7, SDX_RNN_ATTRIBUTES " input_forget:i", kFloats),
    lstm_row(14, SDX_RNN_ATTRIBUTES " input_forget:i layout:i", kFloats),
    lstm_row(22, SDX_RNN_ATTRIBUTES " input_forget:i layout:i", kFloatsBf16),
};

#undef SDX_RNN_ATTRIBUTES

}  // namespace

std::span<const OpSchema> rnn_schemas() { return kRows; }

}  // namespace sardonyx
