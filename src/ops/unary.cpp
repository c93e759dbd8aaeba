#include <cmath>

#include "ir/element.h"
#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"

namespace sardonyx {

namespace {

/// y[i] = f(x[i]) through double.
template <double (*f)(double)>
Status evaluate_real(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const std::int64_t count = x.element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    write_real(x.dtype(), y->mutable_data(), i, f(read_real(x.dtype(), x.data(), i)));
  }
  return {};
}

double relu(double x) { return std::isnan(x) ? x : std::max(x, 0.0); }

constexpr OpSchema kRows[] = {
    {"", "Relu", 6, {"T>T", kFloats}, "", infer_same_shape, evaluate_real<relu>},
    {"", "Relu", 13, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_real<relu>},
    {"", "Relu", 14, {"T>T", kFloatsBf16 | kSignedInts}, "", infer_same_shape,
     evaluate_real<relu>},
};

}  // namespace

std::span<const OpSchema> unary_schemas() { return kRows; }

}  // namespace sardonyx
