#pragma once

#include <vector>

#include "ops/dense.h"
#include "ops/fused_activation.h"
#include "ops/infer_context.h"

namespace sardonyx {

enum class RecurrentKind : std::uint8_t { Rnn, Gru, Lstm };

/// Gates of one cell: 1, 3 (z r h) or 4 (i o f c).
constexpr std::int64_t gate_count(RecurrentKind kind) {
  return kind == RecurrentKind::Rnn ? 1 : kind == RecurrentKind::Gru ? 3 : 4;
}

/// Everything but numbers about one recurrent node.
struct RecurrentPlan {
  RecurrentKind kind = RecurrentKind::Rnn;
  std::int64_t steps = 0;
  std::int64_t batch = 0;
  std::int64_t input = 0;
  std::int64_t hidden = 0;
  std::int64_t directions = 1;
  /// The one direction runs from the end.
  bool is_reverse = false;
  /// The batch comes before the steps.
  bool is_batch_first = false;
  bool resets_after = false;
  bool couples_forget = false;
  float clip = 0.0F;
  /// Per direction: f, g, h.
  std::vector<Activation> activations;

  std::int64_t gates() const { return gate_count(kind) * hidden; }
  /// Rows of X, of Y and of the states.
  std::int64_t x_row(std::int64_t t, std::int64_t b) const {
    return is_batch_first ? b * steps + t : t * batch + b;
  }
  std::int64_t y_row(std::int64_t t, std::int64_t d, std::int64_t b) const {
    return is_batch_first ? (b * steps + t) * directions + d : (t * directions + d) * batch + b;
  }
  std::int64_t state_row(std::int64_t d, std::int64_t b) const {
    return is_batch_first ? b * directions + d : d * batch + b;
  }
};

/// Reads the attributes; sizes stay unset.
/// Errors   InvalidModel for an unknown direction or wrong counts, Unsupported for an activation.
Result<RecurrentPlan> recurrent_plan(RecurrentKind kind, const Attributes& attributes);

/// Products with the weights of one direction. Rows are dense; results replace what was there.
template <typename C>
class RecurrentWeights {
 public:
  virtual ~RecurrentWeights() = default;
  /// out [rows, gates] = x [rows, input] times the input weights.
  virtual Status multiply_input(const C* x, std::int64_t rows, C* out) = 0;
  /// out [rows, end - begin] = h [rows, hidden] times columns [begin, end) of the recurrence ones.
  virtual Status multiply_state(const C* h, std::int64_t rows, std::int64_t begin, std::int64_t end,
                                C* out) = 0;
};

/// Float operands of a recurrent node; null where left out.
template <typename C>
struct RecurrentInputs {
  const C* x = nullptr;
  const C* bias = nullptr;
  const C* initial_h = nullptr;
  const C* initial_c = nullptr;
  const C* peephole = nullptr;
  std::vector<std::int64_t> lengths;
};
template <typename C>
struct RecurrentOutputs {
  C* y = nullptr;
  C* y_h = nullptr;
  C* y_c = nullptr;
};

/// Runs one direction.
template <typename C>
Status run_direction(const RecurrentPlan& plan, std::int64_t direction,
                     RecurrentWeights<C>& weights, const RecurrentInputs<C>& inputs,
                     const RecurrentOutputs<C>& outputs);

/// Checks the shapes of X, B, sequence_lens and the states, whose inputs stand at the same
/// positions in all such operators, and sets those of Y, Y_h and Y_c.
Status infer_recurrent(InferContext& context, RecurrentKind kind, Dim hidden);

/// Reads sequence_lens (input 4) and checks it against the plan.
Result<std::vector<std::int64_t>> sequence_lengths(EvalContext& context, const RecurrentPlan& plan);

}  // namespace sardonyx
