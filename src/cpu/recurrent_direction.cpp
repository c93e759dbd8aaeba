#include "cpu/recurrent_direction.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace sardonyx {

namespace {

/// The functions that take no numbers.
std::optional<kernels::Activation> function_named(std::string name) {
  for (char& letter : name) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  if (name == "sigmoid") return kernels::Activation{kernels::ActivationKind::Sigmoid, 0, 0};
  if (name == "tanh") return kernels::Activation{kernels::ActivationKind::Tanh, 0, 0};
  if (name == "relu") return kernels::Activation{kernels::ActivationKind::Relu, 0, 0};
  return std::nullopt;
}

/// A product of counts that are not negative; -1, which no scratch accepts, when it overflows.
std::int64_t product_of(std::int64_t a, std::int64_t b, std::int64_t c) {
  const auto ab = checked_multiply(a, b);
  const auto all = ab ? checked_multiply(*ab, c) : std::nullopt;
  return all ? *all : -1;
}

}  // namespace

std::vector<RecurrentFunctions> recurrent_functions(const RecurrentPlan& plan,
                                                    const Attributes& attributes) {
  if (plan.kind == RecurrentKind::Rnn) return {};
  std::vector<RecurrentFunctions> all(static_cast<std::size_t>(plan.directions));
  const auto& names = attributes.get_strings("activations");
  if (names.empty()) return all;
  const std::size_t each = plan.kind == RecurrentKind::Lstm ? 3 : 2;
  if (names.size() < each * all.size()) return {};
  for (std::size_t d = 0; d < all.size(); ++d) {
    kernels::Activation* targets[] = {&all[d].gate, &all[d].candidate, &all[d].output};
    for (std::size_t i = 0; i < each; ++i) {
      const auto function = function_named(names[d * each + i]);
      if (!function) return {};
      *targets[i] = *function;
    }
  }
  return all;
}

RecurrentDirection::RecurrentDirection(const RecurrentPlan& plan, std::int64_t direction,
                                       const RecurrentFunctions& functions,
                                       const RecurrentOperands& operands, ScratchCursor& scratch)
    : plan_(plan),
      direction_(direction),
      functions_(functions),
      operands_(operands),
      is_reverse_(plan.is_reverse || direction == 1) {
  projected_ = scratch.take<float>(product_of(plan.steps, plan.batch, plan.gates()));
  product_ = scratch.take<float>(product_of(plan.batch, plan.gates(), 1));
  h_ = scratch.take<float>(product_of(plan.batch, plan.hidden, 1));
  c_ = scratch.take<float>(product_of(plan.batch, plan.hidden, 1));
  reset_ = scratch.take<float>(
      plan.kind == RecurrentKind::Gru ? product_of(plan.batch, plan.hidden, 1) : 0);
  bias_ = scratch.take<float>(plan.gates());
}

std::int64_t RecurrentDirection::own_gates() const {
  const bool waits = plan_.kind == RecurrentKind::Gru && !plan_.resets_after;
  return waits ? 2 * plan_.hidden : plan_.gates();
}

std::int64_t RecurrentDirection::length(std::int64_t b) const {
  return operands_.lengths == nullptr ? plan_.steps : operands_.lengths[b];
}

std::int64_t RecurrentDirection::time_of(std::int64_t step, std::int64_t b) const {
  return is_reverse_ ? length(b) - 1 - step : step;
}

const float* RecurrentDirection::input_row(std::int64_t step, std::int64_t b) const {
  return projected_ + plan_.x_row(time_of(step, b), b) * plan_.gates();
}

void RecurrentDirection::run(DirectionWeights& weights) {
  begin();
  const bool is_empty = plan_.batch == 0 || plan_.hidden == 0;
  for (std::int64_t i = 0; i < plan_.steps && !is_empty; ++i) step(i, weights);
  finish();
}

void RecurrentDirection::begin() {
  set_bias();
  const std::int64_t hidden = plan_.hidden;
  for (std::int64_t b = 0; b < plan_.batch; ++b) {
    const std::int64_t row = plan_.state_row(direction_, b) * hidden;
    for (auto [from, to] : {std::pair(operands_.initial_h, h_), {operands_.initial_c, c_}}) {
      if (from == nullptr) {
        std::fill_n(to + b * hidden, hidden, 0.0F);
      } else {
        std::copy_n(from + row, hidden, to + b * hidden);
      }
    }
    for (std::int64_t t = length(b); t < plan_.steps && operands_.y != nullptr; ++t) {
      std::fill_n(operands_.y + plan_.y_row(t, direction_, b) * hidden, hidden, 0.0F);
    }
  }
  // Rows that have ended are multiplied like the others.
  if (plan_.kind == RecurrentKind::Gru) std::fill_n(reset_, plan_.batch * hidden, 0.0F);
}

/// Both biases of a gate at once, where nothing stands between the products.
void RecurrentDirection::set_bias() {
  if (operands_.bias == nullptr) {
    bias_ = nullptr;
    return;
  }
  const std::int64_t gates = plan_.gates();
  const float* bias = operands_.bias + direction_ * 2 * gates;
  const bool is_apart = plan_.kind == RecurrentKind::Gru && plan_.resets_after;
  const std::int64_t joint = is_apart ? 2 * plan_.hidden : gates;
  for (std::int64_t k = 0; k < joint; ++k) bias_[k] = bias[k] + bias[gates + k];
  std::copy(bias + joint, bias + gates, bias_ + joint);
}

void RecurrentDirection::step(std::int64_t step, DirectionWeights& weights) {
  const std::int64_t n = plan_.hidden;
  const bool is_gru = plan_.kind == RecurrentKind::Gru;
  weights.multiply_state(h_, 0, own_gates(), product_);
  for (std::int64_t b = 0; b < plan_.batch; ++b) {
    if (step >= length(b)) continue;
    is_gru ? gru_reset_row(step, b) : lstm_row(step, b);
  }
  if (is_gru && !plan_.resets_after) weights.multiply_state(reset_, 2 * n, 3 * n, c_);
  for (std::int64_t b = 0; b < plan_.batch; ++b) {
    if (step >= length(b)) continue;
    if (is_gru) gru_output_row(step, b);
    if (operands_.y == nullptr) continue;
    std::copy_n(h_ + b * n, n, operands_.y + plan_.y_row(time_of(step, b), direction_, b) * n);
  }
}

void RecurrentDirection::lstm_row(std::int64_t step, std::int64_t b) {
  const std::int64_t n = plan_.hidden;
  kernels::LstmArgs args;
  args.hidden = n;
  args.gates = product_ + b * plan_.gates();
  args.input = input_row(step, b);
  args.bias = bias_;
  args.c_before = args.c = c_ + b * n;
  args.h = h_ + b * n;
  if (operands_.peephole != nullptr) args.peepholes = operands_.peephole + direction_ * 3 * n;
  args.clip = plan_.clip;
  args.input_forget = plan_.couples_forget;
  args.gate = functions_.gate;
  args.candidate = functions_.candidate;
  args.output = functions_.output;
  kernels::rnn_table().lstm(args, 0, 1);
}

void RecurrentDirection::gru_reset_row(std::int64_t step, std::int64_t b) {
  const std::int64_t n = plan_.hidden;
  kernels::GruResetArgs args;
  args.hidden = n;
  args.gates = product_ + b * own_gates();
  args.input = input_row(step, b);
  args.bias = bias_;
  args.operand = h_ + b * n;
  if (plan_.resets_after) {
    args.operand = args.gates + 2 * n;
    args.addend = args.input + 2 * n;
    if (bias_ != nullptr) {
      args.operand_bias = operands_.bias + direction_ * 6 * n + 5 * n;
      args.addend_bias = bias_ + 2 * n;
    }
  }
  args.reset = reset_ + b * n;
  args.clip = plan_.clip;
  args.gate = functions_.gate;
  kernels::rnn_table().gru_reset(args, 0, 1);
}

void RecurrentDirection::gru_output_row(std::int64_t step, std::int64_t b) {
  const std::int64_t n = plan_.hidden;
  kernels::GruOutputArgs args;
  args.hidden = n;
  args.z = product_ + b * own_gates();
  args.sums = reset_ + b * n;
  if (!plan_.resets_after) {
    args.sums = c_ + b * n;
    args.addend = input_row(step, b) + 2 * n;
    if (bias_ != nullptr) args.addend_bias = bias_ + 2 * n;
  }
  args.h_before = args.h = h_ + b * n;
  args.clip = plan_.clip;
  args.candidate = functions_.candidate;
  kernels::rnn_table().gru_output(args, 0, 1);
}

void RecurrentDirection::finish() const {
  const std::int64_t n = plan_.hidden;
  for (std::int64_t b = 0; b < plan_.batch; ++b) {
    const std::int64_t row = plan_.state_row(direction_, b) * n;
    if (operands_.y_h != nullptr) std::copy_n(h_ + b * n, n, operands_.y_h + row);
    if (operands_.y_c != nullptr) std::copy_n(c_ + b * n, n, operands_.y_c + row);
  }
}

}  // namespace sardonyx
