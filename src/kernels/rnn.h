#pragma once

#include <cstdint>

#include "base/cpu_features.h"
#include "kernels/activation.h"

namespace sardonyx::kernels {

/// The part of an LSTM step that follows the matrix products, for rows of a batch. All strides are
/// floats from row to row.
struct LstmArgs {
  std::int64_t hidden = 0;
  /// [4][hidden] a row, in ONNX's order i, o, f, c. Their sum goes into the gates: h * R,
  const float* gates = nullptr;
  std::int64_t gates_stride = 0;
  const float* input = nullptr;  // x * W, or null,
  std::int64_t input_stride = 0;
  const float* bias = nullptr;  // one row for all, or null.
  const float* c_before = nullptr;
  std::int64_t c_before_stride = 0;
  float* c = nullptr;  // may be c_before
  std::int64_t c_stride = 0;
  float* h = nullptr;
  std::int64_t h_stride = 0;
  const float* peepholes = nullptr;  // [3][hidden] in the order i, o, f, or null
  float clip = 0;                    // of what goes into the gates' functions; 0: none
  bool input_forget = false;         // f = 1 - i
  Activation gate = {ActivationKind::Sigmoid, 0, 0};
  Activation candidate = {ActivationKind::Tanh, 0, 0};
  Activation output = {ActivationKind::Tanh, 0, 0};
};

/// The first part of a GRU step. Sums gates, input and bias to update and reset gate, [2][hidden] a
/// row in the order z, r; writes z to `gates`, and
/// reset = r * (operand + operand_bias) + (addend + addend_bias if there is an addend).
/// linear_before_reset = 0: operand is the state before; its product with R_h follows.
/// linear_before_reset = 1: operand is h * R_h, addend x * W_h.
/// A bias is one row for all; it, the input and the addend may be null.
struct GruResetArgs {
  std::int64_t hidden = 0;
  float* gates = nullptr;
  std::int64_t gates_stride = 0;
  const float* input = nullptr;
  std::int64_t input_stride = 0;
  const float* bias = nullptr;
  const float* operand = nullptr;
  std::int64_t operand_stride = 0;
  const float* operand_bias = nullptr;
  const float* addend = nullptr;
  std::int64_t addend_stride = 0;
  const float* addend_bias = nullptr;
  float* reset = nullptr;
  std::int64_t reset_stride = 0;
  float clip = 0;
  Activation gate = {ActivationKind::Sigmoid, 0, 0};
};

/// The last part of a GRU step: h = (1 - z) * candidate(sums + addend + addend_bias) + z *
/// h_before, where the addend and its bias, one row for all, may be null.
struct GruOutputArgs {
  std::int64_t hidden = 0;
  const float* z = nullptr;
  std::int64_t z_stride = 0;
  const float* sums = nullptr;
  std::int64_t sums_stride = 0;
  const float* addend = nullptr;
  std::int64_t addend_stride = 0;
  const float* addend_bias = nullptr;
  const float* h_before = nullptr;
  std::int64_t h_before_stride = 0;
  float* h = nullptr;  // may be h_before
  std::int64_t h_stride = 0;
  float clip = 0;
  Activation candidate = {ActivationKind::Tanh, 0, 0};
};

/// Element-wise parts of recurrent steps for one instruction set, each for the rows [first, last).
///
/// Numbers  float32, functions as kernels/activation.h; the clip leaves a NaN a NaN.
/// Cost     one pass; no allocation; one thread.
/// Errors   none: sizes are checked by the caller.
/// Source   ONNX LSTM-1..22, GRU-1..22.
struct RnnTable {
  Isa isa;
  void (*lstm)(const LstmArgs& args, std::int64_t first, std::int64_t last);
  void (*gru_reset)(const GruResetArgs& args, std::int64_t first, std::int64_t last);
  void (*gru_output)(const GruOutputArgs& args, std::int64_t first, std::int64_t last);
};
const RnnTable& rnn_table(Isa isa = active_isa());

}  // namespace sardonyx::kernels
