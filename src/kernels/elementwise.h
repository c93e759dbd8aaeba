#pragma once

#include <cstdint>

#include "base/cpu_features.h"
#include "kernels/activation.h"

namespace sardonyx::kernels {

/// Functions of one number beside the activations.
enum class UnaryKind : std::uint8_t {
  Exp,
  Log,
  Sqrt,
  Reciprocal,
  Abs,
  Neg,
  Erf,
  Sin,
  Cos,
  Floor,
  Ceil,
  Softplus,
};

/// Functions of two numbers. Min and Max are NaN when one operand is.
enum class BinaryKind : std::uint8_t { Add, Sub, Mul, Div, Min, Max, Pow, PRelu };

/// Which operand of a binary function is one number for the whole run.
enum class Repeat : std::uint8_t { None, A, B };

/// How a row is reduced.
enum class ReduceKind : std::uint8_t { Sum, Max, Min, SumSquare };

/// Normalisation of a row: y = (x - mean) / sqrt(variance + epsilon) * scale + bias; without mean
/// it divides by the root of the mean square. bias may be null.
struct NormArgs {
  std::int64_t columns = 0;
  const float* scale = nullptr;
  const float* bias = nullptr;
  float epsilon = 0;
  bool subtracts_mean = true;
};

/// Elementwise float32 functions, softmax, normalisation and reductions of rows for one
/// instruction set.
///
/// Shapes   `count` elements, or dense rows of `columns` elements. y may be x (or a, or b).
/// Numbers  Exp, Erf, Softmax: relative error within 1e-6 (Erf absolute, near 0). Sums of rows run
///          in vector lanes, in an order that depends on `columns` alone. A NaN stays a NaN.
/// Cost     one pass; three for softmax and normalisation, over rows that stay in the cache.
/// Errors   none. No element, or no column: nothing is written (reductions give 0, or the infinity
///          that a maximum or minimum starts from).
struct ElementwiseTable {
  Isa isa;
  void (*activate)(const Activation& activation, const float* x, float* y, std::int64_t count);
  void (*unary)(UnaryKind kind, const float* x, float* y, std::int64_t count);
  void (*binary)(BinaryKind kind, Repeat repeat, const float* a, const float* b, float* y,
                 std::int64_t count);
  void (*softmax)(const float* x, float* y, std::int64_t rows, std::int64_t columns);
  void (*normalize)(const NormArgs& args, const float* x, float* y, std::int64_t rows);
  /// y[row] = reduction of the row.
  void (*reduce_rows)(ReduceKind kind, const float* x, float* y, std::int64_t rows,
                      std::int64_t columns);
  /// y[column] = reduction over the rows; y must not be x.
  void (*reduce_columns)(ReduceKind kind, const float* x, float* y, std::int64_t rows,
                         std::int64_t columns, std::int64_t x_stride);
};
const ElementwiseTable& elementwise_table(Isa isa = active_isa());

}  // namespace sardonyx::kernels
