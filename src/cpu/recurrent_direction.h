#pragma once

#include <optional>
#include <vector>

#include "cpu/scratch.h"
#include "kernels/rnn.h"
#include "ops/recurrent.h"

namespace sardonyx {

/// Products with the weights of one direction of a recurrent node.
class DirectionWeights {
 public:
  virtual ~DirectionWeights() = default;
  /// Whether threads may share multiply_input by its rows.
  virtual bool splits_input() const = 0;
  /// out [rows, gates] = rows [first, first + rows) of the node's X times the input weights.
  virtual void multiply_input(std::int64_t first, std::int64_t rows, float* out) = 0;
  /// out [batch, end - begin] = h [batch, hidden] times columns [begin, end) of the recurrence
  /// weights: all, or the parts that a GRU with reset before the product needs.
  virtual void multiply_state(const float* h, std::int64_t begin, std::int64_t end, float* out) = 0;
};

/// What kernels apply to the gates of one direction.
struct RecurrentFunctions {
  kernels::Activation gate{kernels::ActivationKind::Sigmoid, 0, 0};
  kernels::Activation candidate{kernels::ActivationKind::Tanh, 0, 0};
  kernels::Activation output{kernels::ActivationKind::Tanh, 0, 0};
};

/// One per direction; nothing when some function, or the kind of cell, has no kernel.
std::vector<RecurrentFunctions> recurrent_functions(const RecurrentPlan& plan,
                                                    const Attributes& attributes);

/// Operands of a node but X and weights; null where left out.
struct RecurrentOperands {
  const float* bias = nullptr;
  const std::int32_t* lengths = nullptr;
  const float* initial_h = nullptr;
  const float* initial_c = nullptr;
  const float* peephole = nullptr;
  float* y = nullptr;
  float* y_h = nullptr;
  float* y_c = nullptr;
};

/// One direction of an LSTM or a GRU, step after step.
///
/// Numbers  as the evaluator, but for the order of sums and the functions of kernels/activation.h.
/// Cost     no allocation; one thread.
/// Errors   none: the plan's sizes and the lengths are checked by the caller.
class RecurrentDirection {
 public:
  /// Takes its memory from `scratch`: what a cursor without memory counts.
  RecurrentDirection(const RecurrentPlan& plan, std::int64_t direction,
                     const RecurrentFunctions& functions, const RecurrentOperands& operands,
                     ScratchCursor& scratch);

  /// [steps * batch, gates], X times the input weights: to be filled before run().
  float* projected() { return projected_; }
  void run(DirectionWeights& weights);

 private:
  void begin();
  void set_bias();
  void step(std::int64_t step, DirectionWeights& weights);
  void lstm_row(std::int64_t step, std::int64_t b);
  void gru_reset_row(std::int64_t step, std::int64_t b);
  void gru_output_row(std::int64_t step, std::int64_t b);
  void finish() const;
  /// Columns of the first product of a step: a GRU's candidate may have to wait for its gates.
  std::int64_t own_gates() const;
  std::int64_t length(std::int64_t b) const;
  std::int64_t time_of(std::int64_t step, std::int64_t b) const;
  const float* input_row(std::int64_t step, std::int64_t b) const;

  const RecurrentPlan& plan_;
  std::int64_t direction_;
  const RecurrentFunctions& functions_;
  const RecurrentOperands& operands_;
  bool is_reverse_;
  float* projected_;
  float* product_;  // [batch, gates]
  float* h_;        // [batch, hidden]
  float* c_;        // of an LSTM; the second product of a GRU
  float* reset_;    // of a GRU
  float* bias_;     // [gates], or null
};

}  // namespace sardonyx
