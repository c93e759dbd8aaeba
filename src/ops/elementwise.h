#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "ops/eval_context.h"
#include "ops/infer_context.h"

namespace sardonyx {

/// A function of one real number over arrays, in float and in double.
struct RealMap {
  void (*f32)(const void* state, const float* x, float* y, std::int64_t count);
  void (*f64)(const void* state, const double* x, double* y, std::int64_t count);
};

/// Output 0 = map(input 0), element by element, in the type of input 0: float64 in double, all
/// else in float, narrower floats rounded once.
Status evaluate_real_map(EvalContext& context, const RealMap& map, const void* state);

/// The same for a callable that takes a float or a double.
template <typename F>
Status map_real(EvalContext& context, const F& f) {
  const RealMap map = {
      [](const void* state, const float* x, float* y, std::int64_t count) {
        const F& g = *static_cast<const F*>(state);
        for (std::int64_t i = 0; i < count; ++i) y[i] = g(x[i]);
      },
      [](const void* state, const double* x, double* y, std::int64_t count) {
        const F& g = *static_cast<const F*>(state);
        for (std::int64_t i = 0; i < count; ++i) y[i] = g(x[i]);
      },
  };
  return evaluate_real_map(context, map, &f);
}

/// Output 0 = f(input 0) for integers as int64 (uint64 wraps); the result drops high bits.
using IntFn = std::int64_t (*)(const void* state, std::int64_t x);
Status evaluate_int_map(EvalContext& context, IntFn f, const void* state);
template <typename F>
Status map_int(EvalContext& context, const F& f) {
  return evaluate_int_map(
      context,
      [](const void* state, std::int64_t x) { return (*static_cast<const F*>(state))(x); }, &f);
}

/// Output 0 (bool) = test(input 0) for floats.
Status test_real(EvalContext& context, bool (*test)(const void* state, double x),
                 const void* state);

/// How to walk operands that broadcast to one output: runs along the innermost axis, in which each
/// operand moves with the output or stays.
struct BroadcastPlan {
  static constexpr int kOperands = 3;
  /// Axes around the runs, outermost first, with the operands' strides in elements.
  Shape outer;
  std::array<Shape, kOperands> strides;
  std::int64_t run = 0;
  std::array<bool, kOperands> moves{};
  std::int64_t run_count = 0;
};

/// Each operand's shape must broadcast to `output`; all are static.
BroadcastPlan plan_broadcast(const Shape& output, std::span<const Shape> operands);

/// Calls body(output_offset, operand_offsets) for every run, offsets in elements.
template <typename Body>
void for_each_run(const BroadcastPlan& plan, Body&& body) {
  std::array<std::int64_t, BroadcastPlan::kOperands> at{};
  Shape index = Shape::filled(plan.outer.rank(), 0);
  for (std::int64_t n = 0; n < plan.run_count; ++n) {
    body(n * plan.run, at);
    for (int axis = plan.outer.rank() - 1; axis >= 0; --axis) {
      for (std::size_t k = 0; k < at.size(); ++k) at[k] += plan.strides[k][axis];
      if (++index[axis] < plan.outer[axis]) break;
      for (std::size_t k = 0; k < at.size(); ++k) {
        at[k] -= plan.strides[k][axis] * plan.outer[axis];
      }
      index[axis] = 0;
    }
  }
}

/// y[i] = f(a[i], b[i]) over a run; an operand that does not move is one element.
using BinaryRun = void (*)(const std::byte* a, const std::byte* b, std::byte* y,
                           std::int64_t count, bool a_moves, bool b_moves);

/// The run for F::apply(T, T) -> R.
template <typename F, typename T, typename R = T>
void run_binary(const std::byte* pa, const std::byte* pb, std::byte* py, std::int64_t count,
                bool a_moves, bool b_moves) {
  const T* a = reinterpret_cast<const T*>(pa);
  const T* b = reinterpret_cast<const T*>(pb);
  R* y = reinterpret_cast<R*>(py);
  if (a_moves && b_moves) {
    for (std::int64_t i = 0; i < count; ++i) y[i] = F::apply(a[i], b[i]);
  } else if (a_moves) {
    const T fixed = *b;
    for (std::int64_t i = 0; i < count; ++i) y[i] = F::apply(a[i], fixed);
  } else if (b_moves) {
    const T fixed = *a;
    for (std::int64_t i = 0; i < count; ++i) y[i] = F::apply(fixed, b[i]);
  } else {
    const R value = F::apply(*a, *b);
    for (std::int64_t i = 0; i < count; ++i) y[i] = value;
  }
}

/// y = run(a, b) with broadcasting; the elements of all three have the sizes that `run` expects.
/// y may be a when a has y's shape.
void broadcast_run(BinaryRun run, const Tensor& a, const Tensor& b, Tensor& y);

/// Output 0 = run(input 0, input 1), both inputs converted to `compute` first and the result
/// (in `result`) to the output's type.
Status evaluate_binary(EvalContext& context, BinaryRun run, DType compute, DType result);

/// The second operand of a binary operator of opset 6 or before, whose attribute `axis` says where
/// it begins: its shape with ones appended so that it broadcasts as numpy does.
/// Errors   InvalidModel when the axis is outside of the first operand.
Result<Shape> legacy_operand_shape(const Attributes& attributes, const Shape& a, const Shape& b);

/// InferFn of binary operators, which knows about that.
Status infer_binary(InferContext& context);

/// Integers of T that wrap; the type in which they are computed does not overflow.
template <typename T>
using Wrapping = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

}  // namespace sardonyx
