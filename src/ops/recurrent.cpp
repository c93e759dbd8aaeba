#include "ops/recurrent.h"

#include <algorithm>

namespace sardonyx {

namespace {

std::vector<std::string> default_activations(RecurrentKind kind) {
  switch (kind) {
    case RecurrentKind::Rnn: return {"Tanh"};
    case RecurrentKind::Gru: return {"Sigmoid", "Tanh"};
    case RecurrentKind::Lstm: return {"Sigmoid", "Tanh", "Tanh"};
  }
  return {};
}

Status read_activations(RecurrentPlan& plan, const Attributes& attributes) {
  const auto defaults = default_activations(plan.kind);
  const auto& given = attributes.get_strings("activations");
  const auto& alphas = attributes.get_floats("activation_alpha");
  const auto& betas = attributes.get_floats("activation_beta");
  const std::size_t count = defaults.size() * static_cast<std::size_t>(plan.directions);
  if (!given.empty() && given.size() < count) {
    return failure(Code::InvalidModel, "activations has {} names, expected {}", given.size(),
                   count);
  }
  std::size_t next_alpha = 0;
  std::size_t next_beta = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& name = given.empty() ? defaults[i % defaults.size()] : given[i];
    SDX_ASSIGN(Activation activation, Activation::of(name, nullptr, nullptr));
    // The lists hold numbers only for functions that take them.
    const bool takes_alpha = activation.alpha_count() > 0 && next_alpha < alphas.size();
    const bool takes_beta = activation.beta_count() > 0 && next_beta < betas.size();
    const float* alpha = takes_alpha ? &alphas[next_alpha++] : nullptr;
    const float* beta = takes_beta ? &betas[next_beta++] : nullptr;
    SDX_ASSIGN(activation, Activation::of(name, alpha, beta));
    plan.activations.push_back(activation);
  }
  return {};
}

/// One direction while it runs.
template <typename C>
class Direction {
 public:
  Direction(const RecurrentPlan& plan, std::int64_t direction, RecurrentWeights<C>& weights,
            const RecurrentInputs<C>& inputs, const RecurrentOutputs<C>& outputs)
      : p_(plan),
        d_(direction),
        weights_(weights),
        in_(inputs),
        out_(outputs),
        is_reverse_(plan.is_reverse || direction == 1),
        activations_(plan.activations.data() + static_cast<std::size_t>(direction) *
                                                   plan.activations.size() /
                                                   static_cast<std::size_t>(plan.directions)) {}

  Status run() {
    SDX_TRY(prepare());
    for (std::int64_t step = 0; step < p_.steps; ++step) SDX_TRY(run_step(step));
    finish();
    return {};
  }

 private:
  std::int64_t x_row(std::int64_t t, std::int64_t b) const { return p_.x_row(t, b); }
  std::int64_t state_row(std::int64_t b) const { return p_.state_row(d_, b); }
  std::int64_t y_row(std::int64_t t, std::int64_t b) const { return p_.y_row(t, d_, b); }
  std::int64_t time_of(std::int64_t step, std::int64_t b) const {
    return is_reverse_ ? in_.lengths[static_cast<std::size_t>(b)] - 1 - step : step;
  }

  Status prepare() {
    const std::int64_t gates = p_.gates();
    const std::int64_t hidden = p_.hidden;
    SDX_ASSIGN(projected_, make_scratch<C>(p_.steps * p_.batch * gates));
    SDX_TRY(weights_.multiply_input(in_.x, p_.steps * p_.batch, data(projected_)));
    SDX_ASSIGN(gates_, make_scratch<C>(p_.batch * gates));
    std::fill_n(data(gates_), p_.batch * gates, C{});
    SDX_ASSIGN(recurrent_, make_scratch<C>(p_.batch * gates));
    SDX_ASSIGN(h_, make_scratch<C>(p_.batch * hidden));
    SDX_ASSIGN(c_, make_scratch<C>(p_.batch * hidden));
    SDX_ASSIGN(scratch_, make_scratch<C>(p_.batch * hidden));
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (auto [from, to] : {std::pair(in_.initial_h, data(h_)), {in_.initial_c, data(c_)}}) {
        if (from == nullptr)
          std::fill_n(to + b * hidden, hidden, C{});
        else
          std::copy_n(from + state_row(b) * hidden, hidden, to + b * hidden);
      }
    }
    if (out_.y == nullptr) return {};
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (std::int64_t t = in_.lengths[static_cast<std::size_t>(b)]; t < p_.steps; ++t) {
        std::fill_n(out_.y + y_row(t, b) * hidden, hidden, C{});
      }
    }
    return {};
  }

  Status run_step(std::int64_t step) {
    const std::int64_t gates = p_.gates();
    const std::int64_t own = p_.kind == RecurrentKind::Gru ? 2 * p_.hidden : gates;
    // The recurrence part of a GRU's candidate waits for the reset gate, or stays apart from it.
    const bool waits = p_.kind == RecurrentKind::Gru;
    SDX_TRY(weights_.multiply_state(data(h_), p_.batch, 0, own, data(recurrent_)));
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      if (step >= in_.lengths[static_cast<std::size_t>(b)]) continue;
      const C* x = data(projected_) + x_row(time_of(step, b), b) * gates;
      C* to = data(gates_) + b * gates;
      const C* w_bias = in_.bias != nullptr ? in_.bias + d_ * 2 * gates : nullptr;
      for (std::int64_t k = 0; k < gates; ++k) {
        to[k] = x[k] + (w_bias != nullptr ? w_bias[k] : C{});
      }
      for (std::int64_t k = 0; k < own; ++k) {
        to[k] += data(recurrent_)[b * own + k];
        if (w_bias != nullptr) to[k] += w_bias[gates + k];
      }
    }
    if (waits) SDX_TRY(run_gru(step));
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      if (step >= in_.lengths[static_cast<std::size_t>(b)]) continue;
      if (p_.kind == RecurrentKind::Rnn) finish_rnn(b);
      if (p_.kind == RecurrentKind::Lstm) finish_lstm(b);
      if (out_.y == nullptr) continue;
      std::copy_n(data(h_) + b * p_.hidden, p_.hidden,
                  out_.y + y_row(time_of(step, b), b) * p_.hidden);
    }
    return {};
  }

  void activate(int which, C* values, std::int64_t count) const {
    if (p_.clip > 0.0F) {
      const C limit = static_cast<C>(p_.clip);
      for (std::int64_t i = 0; i < count; ++i) {
        values[i] = values[i] > limit ? limit : values[i] < -limit ? -limit : values[i];
      }
    }
    activations_[which].apply(values, count);
  }

  void finish_rnn(std::int64_t b) {
    C* gates = data(gates_) + b * p_.hidden;
    activate(0, gates, p_.hidden);
    std::copy_n(gates, p_.hidden, data(h_) + b * p_.hidden);
  }

  void finish_lstm(std::int64_t b) {
    const std::int64_t n = p_.hidden;
    C* i = data(gates_) + b * 4 * n;
    C* o = i + n;
    C* f = o + n;
    C* g = f + n;
    C* c = data(c_) + b * n;
    C* h = data(h_) + b * n;
    const C* peephole = in_.peephole != nullptr ? in_.peephole + d_ * 3 * n : nullptr;
    for (std::int64_t k = 0; k < n && peephole != nullptr; ++k) {
      i[k] += peephole[k] * c[k];
      f[k] += peephole[2 * n + k] * c[k];
    }
    activate(0, i, n);
    activate(1, g, n);
    if (p_.couples_forget) {
      for (std::int64_t k = 0; k < n; ++k) f[k] = C{1} - i[k];
    } else {
      activate(0, f, n);
    }
    for (std::int64_t k = 0; k < n; ++k) c[k] = f[k] * c[k] + i[k] * g[k];
    for (std::int64_t k = 0; k < n && peephole != nullptr; ++k) o[k] += peephole[n + k] * c[k];
    activate(0, o, n);
    std::copy_n(c, n, h);
    activations_[2].apply(h, n);
    for (std::int64_t k = 0; k < n; ++k) h[k] *= o[k];
  }

  Status run_gru(std::int64_t step) {
    const std::int64_t n = p_.hidden;
    C* state = data(scratch_);
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      activate(0, data(gates_) + b * 3 * n, 2 * n);
      const C* r = data(gates_) + b * 3 * n + n;
      const C* h = data(h_) + b * n;
      for (std::int64_t k = 0; k < n; ++k) state[b * n + k] = p_.resets_after ? h[k] : r[k] * h[k];
    }
    SDX_TRY(weights_.multiply_state(state, p_.batch, 2 * n, 3 * n, data(recurrent_)));
    const C* bias = in_.bias != nullptr ? in_.bias + d_ * 6 * n + 5 * n : nullptr;
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      if (step >= in_.lengths[static_cast<std::size_t>(b)]) continue;
      C* z = data(gates_) + b * 3 * n;
      const C* r = z + n;
      C* candidate = z + 2 * n;
      C* h = data(h_) + b * n;
      for (std::int64_t k = 0; k < n; ++k) {
        const C own = data(recurrent_)[b * n + k] + (bias != nullptr ? bias[k] : C{});
        candidate[k] += p_.resets_after ? r[k] * own : own;
      }
      activate(1, candidate, n);
      for (std::int64_t k = 0; k < n; ++k) h[k] = (C{1} - z[k]) * candidate[k] + z[k] * h[k];
    }
    return {};
  }

  void finish() {
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      const std::int64_t row = state_row(b) * p_.hidden;
      if (out_.y_h != nullptr) std::copy_n(data(h_) + b * p_.hidden, p_.hidden, out_.y_h + row);
      if (out_.y_c != nullptr) std::copy_n(data(c_) + b * p_.hidden, p_.hidden, out_.y_c + row);
    }
  }

  static C* data(Tensor& tensor) { return reinterpret_cast<C*>(tensor.mutable_data()); }

  const RecurrentPlan& p_;
  std::int64_t d_;
  RecurrentWeights<C>& weights_;
  const RecurrentInputs<C>& in_;
  const RecurrentOutputs<C>& out_;
  bool is_reverse_;
  const Activation* activations_;
  Tensor projected_, gates_, recurrent_, h_, c_, scratch_;
};

/// An optional input that should have these dimensions.
Status check_shape(const InferContext& context, std::size_t input, const Shape& expected) {
  const Shape* shape = context.shape(input);
  if (shape == nullptr) return {};
  bool fits = shape->rank() == expected.rank();
  for (int i = 0; fits && i < expected.rank(); ++i) fits = !differ((*shape)[i], expected[i]);
  if (fits) return {};
  return context.error("'{}' has shape {}, expected {}", context.input_name(input),
                       shape->to_string(), expected.to_string());
}

}  // namespace

Result<RecurrentPlan> recurrent_plan(RecurrentKind kind, const Attributes& attributes) {
  RecurrentPlan plan;
  plan.kind = kind;
  const std::string direction = attributes.get_string("direction", "forward");
  plan.directions = direction == "bidirectional" ? 2 : 1;
  plan.is_reverse = direction == "reverse";
  // The first version of GRU misspells its default.
  const bool is_forward = direction == "forward" || direction == "foward";
  if (!is_forward && !plan.is_reverse && plan.directions == 1) {
    return failure(Code::InvalidModel,
                   "direction is '{}', expected forward, reverse or bidirectional", direction);
  }
  plan.is_batch_first = attributes.get_int("layout", 0) != 0;
  plan.resets_after = attributes.get_int("linear_before_reset", 0) != 0;
  plan.couples_forget = attributes.get_int("input_forget", 0) != 0;
  plan.clip = attributes.get_float("clip", 0.0F);
  SDX_TRY(read_activations(plan, attributes));
  return plan;
}

template <typename C>
Status run_direction(const RecurrentPlan& plan, std::int64_t direction,
                     RecurrentWeights<C>& weights, const RecurrentInputs<C>& inputs,
                     const RecurrentOutputs<C>& outputs) {
  return Direction<C>(plan, direction, weights, inputs, outputs).run();
}
template Status run_direction<float>(const RecurrentPlan&, std::int64_t, RecurrentWeights<float>&,
                                     const RecurrentInputs<float>&, const RecurrentOutputs<float>&);
template Status run_direction<double>(const RecurrentPlan&, std::int64_t, RecurrentWeights<double>&,
                                      const RecurrentInputs<double>&,
                                      const RecurrentOutputs<double>&);

Status infer_recurrent(InferContext& context, RecurrentKind kind, Dim hidden) {
  SDX_ASSIGN(const RecurrentPlan plan, recurrent_plan(kind, context.attributes()));
  const Shape* x = context.shape(0);
  if (x != nullptr && x->rank() != 3) {
    return context.error("'{}' has shape {}, expected three dimensions", context.input_name(0),
                         x->to_string());
  }
  const std::int64_t declared = context.attributes().get_int("hidden_size", kUnknownDim);
  if (is_known(declared) && differ(declared, hidden)) {
    return context.error("hidden_size is {}, but the recurrence weight is for {}", declared,
                         hidden);
  }
  if (!is_known(hidden) && is_known(declared)) hidden = declared;
  const Dim steps = x != nullptr ? (*x)[plan.is_batch_first ? 1 : 0] : kUnknownDim;
  const Dim batch = x != nullptr ? (*x)[plan.is_batch_first ? 0 : 1] : kUnknownDim;
  const Dim d = plan.directions;
  const Shape state = plan.is_batch_first ? Shape{batch, d, hidden} : Shape{d, batch, hidden};
  const Dim gates = is_known(hidden) ? gate_count(kind) * hidden : kUnknownDim;
  SDX_TRY(check_shape(context, 3, {d, is_known(gates) ? 2 * gates : gates}));
  SDX_TRY(check_shape(context, 4, {batch}));
  SDX_TRY(check_shape(context, 5, state));
  if (kind == RecurrentKind::Lstm) {
    SDX_TRY(check_shape(context, 6, state));
    SDX_TRY(check_shape(context, 7, {d, is_known(hidden) ? 3 * hidden : hidden}));
  }
  context.set_shape(
      0, plan.is_batch_first ? Shape{batch, steps, d, hidden} : Shape{steps, d, batch, hidden});
  context.set_shape(1, state);
  context.set_shape(2, state);
  return {};
}

Result<std::vector<std::int64_t>> sequence_lengths(EvalContext& context,
                                                   const RecurrentPlan& plan) {
  if (!context.has_input(4)) {
    return std::vector<std::int64_t>(static_cast<std::size_t>(plan.batch), plan.steps);
  }
  auto lengths = context.ints(4);
  for (const std::int64_t length : lengths) {
    if (length >= 0 && length <= plan.steps) continue;
    return failure(Code::Runtime, "sequence length {} is outside [0, {}]", length, plan.steps);
  }
  return lengths;
}

}  // namespace sardonyx
