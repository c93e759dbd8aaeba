#include <cmath>

#include "ops/elementwise.h"
#include "ops/families.h"

namespace sardonyx {

namespace {

/// y[i] = f(x[i]) for floats.
template <auto f>
Status evaluate_map(EvalContext& context) {
  return map_real(context, f);
}

constexpr auto kAcos = [](auto x) { return std::acos(x); };
constexpr auto kAcosh = [](auto x) { return std::acosh(x); };
constexpr auto kAsin = [](auto x) { return std::asin(x); };
constexpr auto kAsinh = [](auto x) { return std::asinh(x); };
constexpr auto kAtan = [](auto x) { return std::atan(x); };
constexpr auto kAtanh = [](auto x) { return std::atanh(x); };
constexpr auto kCeil = [](auto x) { return std::ceil(x); };
constexpr auto kCos = [](auto x) { return std::cos(x); };
constexpr auto kCosh = [](auto x) { return std::cosh(x); };
constexpr auto kErf = [](auto x) { return std::erf(x); };
constexpr auto kExp = [](auto x) { return std::exp(x); };
constexpr auto kFloor = [](auto x) { return std::floor(x); };
constexpr auto kLog = [](auto x) { return std::log(x); };
constexpr auto kReciprocal = [](auto x) { return 1 / x; };
constexpr auto kRound = [](auto x) { return std::nearbyint(x); };
constexpr auto kSin = [](auto x) { return std::sin(x); };
constexpr auto kSinh = [](auto x) { return std::sinh(x); };
constexpr auto kSqrt = [](auto x) { return std::sqrt(x); };
constexpr auto kTan = [](auto x) { return std::tan(x); };
constexpr auto kTanh = [](auto x) { return std::tanh(x); };

bool is_signed(DType dtype) { return contains(kSignedInts, dtype); }
bool is_integer(DType dtype) { return contains(kInts, dtype); }

std::int64_t negate(std::int64_t x) {
  return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(x));
}

Status evaluate_abs(EvalContext& context) {
  const DType dtype = context.tensor(0).dtype();
  if (is_signed(dtype)) {
    return map_int(context, [](std::int64_t x) { return x < 0 ? negate(x) : x; });
  }
  if (is_integer(dtype)) return map_int(context, [](std::int64_t x) { return x; });
  return map_real(context, [](auto x) { return std::fabs(x); });
}

Status evaluate_neg(EvalContext& context) {
  if (is_integer(context.tensor(0).dtype())) {
    return map_int(context, [](std::int64_t x) { return negate(x); });
  }
  return map_real(context, [](auto x) { return -x; });
}

Status evaluate_sign(EvalContext& context) {
  const DType dtype = context.tensor(0).dtype();
  if (is_signed(dtype)) {
    return map_int(context, [](std::int64_t x) { return std::int64_t{(x > 0) - (x < 0)}; });
  }
  if (is_integer(dtype)) {
    return map_int(context, [](std::int64_t x) { return std::int64_t{x != 0}; });
  }
  return map_real(context, [](auto x) {
    return std::isnan(x) ? x : static_cast<decltype(x)>((x > 0) - (x < 0));
  });
}

/// Integers, which version 9 takes too, go through double.
Status evaluate_erf(EvalContext& context) {
  if (!is_integer(context.tensor(0).dtype())) return map_real(context, kErf);
  return map_int(context, [](std::int64_t x) {
    return static_cast<std::int64_t>(std::erf(static_cast<double>(x)));
  });
}

struct InfinityKinds {
  bool negative;
  bool positive;
};

Status evaluate_is_inf(EvalContext& context) {
  const InfinityKinds kinds = {context.attributes().get_int("detect_negative", 1) != 0,
                               context.attributes().get_int("detect_positive", 1) != 0};
  return test_real(
      context,
      [](const void* state, double x) {
        const auto& wanted = *static_cast<const InfinityKinds*>(state);
        return std::isinf(x) && (x < 0 ? wanted.negative : wanted.positive);
      },
      &kinds);
}

Status evaluate_is_nan(EvalContext& context) {
  return test_real(context, [](const void*, double x) { return std::isnan(x); }, nullptr);
}

Status evaluate_not(EvalContext& context) {
  return map_int(context, [](std::int64_t x) { return std::int64_t{x == 0}; });
}

Status evaluate_bitwise_not(EvalContext& context) {
  return map_int(context, [](std::int64_t x) { return ~x; });
}

constexpr OpSchema kRows[] = {
    {"", "Abs", 1, {"T>T", kFloats}, "consumed_inputs:is", infer_same_shape, evaluate_abs},
    {"", "Abs", 6, {"T>T", kNumeric}, "", infer_same_shape, evaluate_abs},
    {"", "Abs", 13, {"T>T", kNumericBf16}, "", infer_same_shape, evaluate_abs},
    {"", "Acos", 7, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kAcos>},
    {"", "Acos", 22, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kAcos>},
    {"", "Acosh", 9, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kAcosh>},
    {"", "Acosh", 22, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kAcosh>},
    {"", "Asin", 7, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kAsin>},
    {"", "Asin", 22, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kAsin>},
    {"", "Asinh", 9, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kAsinh>},
    {"", "Asinh", 22, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kAsinh>},
    {"", "Atan", 7, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kAtan>},
    {"", "Atan", 22, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kAtan>},
    {"", "Atanh", 9, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kAtanh>},
    {"", "Atanh", 22, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kAtanh>},
    {"", "BitwiseNot", 18, {"T>T", kInts}, "", infer_same_shape, evaluate_bitwise_not},
    {"", "Ceil", 1, {"T>T", kFloats}, "consumed_inputs:is", infer_same_shape, evaluate_map<kCeil>},
    {"", "Ceil", 6, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kCeil>},
    {"", "Ceil", 13, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kCeil>},
    {"", "Cos", 7, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kCos>},
    {"", "Cos", 22, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kCos>},
    {"", "Cosh", 9, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kCosh>},
    {"", "Cosh", 22, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kCosh>},
    {"", "Erf", 9, {"T>T", kNumeric}, "", infer_same_shape, evaluate_erf},
    {"", "Erf", 13, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_erf},
    {"", "Exp", 1, {"T>T", kFloats}, "consumed_inputs:is", infer_same_shape, evaluate_map<kExp>},
    {"", "Exp", 6, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kExp>},
    {"", "Exp", 13, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kExp>},
    {"", "Floor", 1, {"T>T", kFloats}, "consumed_inputs:is", infer_same_shape,
     evaluate_map<kFloor>},
    {"", "Floor", 6, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kFloor>},
    {"", "Floor", 13, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kFloor>},
    {"", "IsInf", 10, {"T>B", set_of(DType::Float32, DType::Float64)},
     "detect_negative:i detect_positive:i", infer_same_shape, evaluate_is_inf},
    {"", "IsInf", 20, {"T>B", kFloatsBf16 | kFloat8}, "detect_negative:i detect_positive:i",
     infer_same_shape, evaluate_is_inf},
    {"", "IsNaN", 9, {"T>B", kFloats}, "", infer_same_shape, evaluate_is_nan},
    {"", "IsNaN", 13, {"T>B", kFloatsBf16}, "", infer_same_shape, evaluate_is_nan},
    {"", "IsNaN", 20, {"T>B", kFloatsBf16 | kFloat8}, "", infer_same_shape, evaluate_is_nan},
    {"", "Log", 1, {"T>T", kFloats}, "consumed_inputs:is", infer_same_shape, evaluate_map<kLog>},
    {"", "Log", 6, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kLog>},
    {"", "Log", 13, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kLog>},
    {"", "Neg", 1, {"T>T", kFloats}, "consumed_inputs:is", infer_same_shape, evaluate_neg},
    {"", "Neg", 6, {"T>T", kSignedInts | kFloats}, "", infer_same_shape, evaluate_neg},
    {"", "Neg", 13, {"T>T", kFloatsBf16 | kSignedInts}, "", infer_same_shape, evaluate_neg},
    {"", "Not", 1, {"B>B"}, "", infer_same_shape, evaluate_not},
    {"", "Reciprocal", 1, {"T>T", kFloats}, "consumed_inputs:is", infer_same_shape,
     evaluate_map<kReciprocal>},
    {"", "Reciprocal", 6, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kReciprocal>},
    {"", "Reciprocal", 13, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kReciprocal>},
    {"", "Round", 11, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kRound>},
    {"", "Round", 22, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kRound>},
    {"", "Sign", 9, {"T>T", kNumeric}, "", infer_same_shape, evaluate_sign},
    {"", "Sign", 13, {"T>T", kNumericBf16}, "", infer_same_shape, evaluate_sign},
    {"", "Sin", 7, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kSin>},
    {"", "Sin", 22, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kSin>},
    {"", "Sinh", 9, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kSinh>},
    {"", "Sinh", 22, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kSinh>},
    {"", "Sqrt", 1, {"T>T", kFloats}, "consumed_inputs:is", infer_same_shape, evaluate_map<kSqrt>},
    {"", "Sqrt", 6, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kSqrt>},
    {"", "Sqrt", 13, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kSqrt>},
    {"", "Tan", 7, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kTan>},
    {"", "Tan", 22, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kTan>},
    {"", "Tanh", 1, {"T>T", kFloats}, "consumed_inputs:is", infer_same_shape, evaluate_map<kTanh>},
    {"", "Tanh", 6, {"T>T", kFloats}, "", infer_same_shape, evaluate_map<kTanh>},
    {"", "Tanh", 13, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_map<kTanh>},
};

}  // namespace

std::span<const OpSchema> unary_schemas() { return kRows; }

}  // namespace sardonyx
