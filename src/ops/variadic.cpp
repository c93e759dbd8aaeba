#include <cmath>

#include "ir/dtype_switch.h"
#include "ir/element.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace sardonyx {

namespace {

struct Sum {
  template <typename T>
  static T apply(T a, T b) {
    return a + b;
  }
};

/// A NaN in either is the result.
struct Max {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a)) return a;
    }
    return b <= a ? a : b;
  }
};

struct Min {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a)) return a;
    }
    return a <= b ? a : b;
  }
};

/// Used to spread the only input.
struct First {
  template <typename T>
  static T apply(T a, T) {
    return a;
  }
};

template <typename F>
BinaryRun run_of(DType dtype) {
  if (dtype == DType::Float32) return run_binary<F, float>;
  if (dtype == DType::Float64) return run_binary<F, double>;
  BinaryRun run = nullptr;
  if constexpr (!std::is_same_v<F, Sum>) {
    switch_ints(dtype, [&]<typename T>() { run = run_binary<F, T>; });
  }
  return run;
}

template <typename T>
void divide(Tensor& y, std::size_t count) {
  for (T& element : y.mutable_values<T>()) element /= static_cast<T>(count);
}

/// y = run(... run(run(x0, x1), x2) ..., xn), in float32 for narrower floats.
Status fold(EvalContext& context, BinaryRun (*pick)(DType), bool is_mean) {
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const DType dtype = y->dtype();
  const bool is_narrow = dtype == DType::Float16 || dtype == DType::BFloat16;
  const DType compute = is_narrow ? DType::Float32 : dtype;
  const BinaryRun run = pick(compute);
  if (run == nullptr) {
    return context.error("{} does not take tensor({})", context.node().op_type, dtype_name(dtype));
  }
  Tensor total = *y;
  if (is_narrow) {
    SDX_ASSIGN(total, Tensor::allocate(compute, y->shape()));
  }
  const auto operand = [&](std::size_t i) -> Result<Tensor> {
    return is_narrow ? to_dtype(context.tensor(i), compute) : context.tensor(i);
  };
  SDX_ASSIGN(const Tensor first, operand(0));
  if (context.input_count() == 1) broadcast_run(run_of<First>(compute), first, first, total);
  for (std::size_t i = 1; i < context.input_count(); ++i) {
    SDX_ASSIGN(const Tensor next, operand(i));
    broadcast_run(run, i == 1 ? first : total, next, total);
  }
  if (is_mean && compute == DType::Float32) divide<float>(total, context.input_count());
  if (is_mean && compute == DType::Float64) divide<double>(total, context.input_count());
  if (is_narrow) {
    convert_elements(compute, total.data(), dtype, y->mutable_data(), y->element_count());
  }
  return {};
}

template <typename F, bool is_mean = false>
Status evaluate_fold(EvalContext& context) {
  return fold(context, run_of<F>, is_mean);
}

Status infer_fold(InferContext& context) {
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i)) return context.error("input {} is required, but left out", i);
  }
  return infer_broadcast(context);
}

constexpr OpSchema kRows[] = {
    {"", "Max", 1, {"T*>T", kFloats}, "consumed_inputs:is", infer_fold, evaluate_fold<Max>},
    {"", "Max", 6, {"T*>T", kFloats}, "", infer_fold, evaluate_fold<Max>},
    {"", "Max", 8, {"T*>T", kFloats}, "", infer_fold, evaluate_fold<Max>},
    {"", "Max", 12, {"T*>T", kNumeric}, "", infer_fold, evaluate_fold<Max>},
    {"", "Max", 13, {"T*>T", kNumericBf16}, "", infer_fold, evaluate_fold<Max>},
    {"", "Mean", 1, {"T*>T", kFloats}, "consumed_inputs:is", infer_fold, evaluate_fold<Sum, true>},
    {"", "Mean", 6, {"T*>T", kFloats}, "", infer_fold, evaluate_fold<Sum, true>},
    {"", "Mean", 8, {"T*>T", kFloats}, "", infer_fold, evaluate_fold<Sum, true>},
    {"", "Mean", 13, {"T*>T", kFloatsBf16}, "", infer_fold, evaluate_fold<Sum, true>},
    {"", "Min", 1, {"T*>T", kFloats}, "consumed_inputs:is", infer_fold, evaluate_fold<Min>},
    {"", "Min", 6, {"T*>T", kFloats}, "", infer_fold, evaluate_fold<Min>},
    {"", "Min", 8, {"T*>T", kFloats}, "", infer_fold, evaluate_fold<Min>},
    {"", "Min", 12, {"T*>T", kNumeric}, "", infer_fold, evaluate_fold<Min>},
    {"", "Min", 13, {"T*>T", kNumericBf16}, "", infer_fold, evaluate_fold<Min>},
    {"", "Sum", 1, {"T*>T", kFloats}, "consumed_inputs:is", infer_fold, evaluate_fold<Sum>},
    {"", "Sum", 6, {"T*>T", kFloats}, "", infer_fold, evaluate_fold<Sum>},
    {"", "Sum", 8, {"T*>T", kFloats}, "", infer_fold, evaluate_fold<Sum>},
    {"", "Sum", 13, {"T*>T", kFloatsBf16}, "", infer_fold, evaluate_fold<Sum>},
};

}  // namespace

std::span<const OpSchema> variadic_schemas() { return kRows; }

}  // namespace sardonyx
