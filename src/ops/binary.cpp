#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/element.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace sardonyx {

namespace {

template <typename T, typename F>
T wrapping(T a, T b, F f) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(f(static_cast<Wrapping<T>>(a), static_cast<Wrapping<T>>(b)));
  } else {
    return f(a, b);
  }
}

struct Add {
  template <typename T>
  static T apply(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
};

struct Sub {
  template <typename T>
  static T apply(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x - y; });
  }
};

struct Mul {
  template <typename T>
  static T apply(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
};

/// Integers truncate; a divisor of zero was refused before.
struct Div {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
      if (b == -1) return Sub::apply(T{0}, a);
    }
    return static_cast<T>(a / b);
  }
};

/// The remainder has the sign of the divisor.
struct FloorMod {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      const T rest = std::fmod(a, b);
      if (rest == 0) return std::copysign(T{0}, b);
      return (rest < 0) != (b < 0) ? rest + b : rest;
    } else if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
      const T rest = static_cast<T>(a % b);
      return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
    } else {
      return static_cast<T>(a % b);
    }
  }
};

/// The remainder has the sign of the dividend.
struct TruncatedMod {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fmod(a, b);
    } else if constexpr (std::is_signed_v<T>) {
      return b == -1 ? T{0} : static_cast<T>(a % b);
    } else {
      return static_cast<T>(a % b);
    }
  }
};

struct Equal {
  template <typename T>
  static bool apply(T a, T b) {
    return a == b;
  }
};

struct Less {
  template <typename T>
  static bool apply(T a, T b) {
    return a < b;
  }
};

struct LessOrEqual {
  template <typename T>
  static bool apply(T a, T b) {
    return a <= b;
  }
};

struct Greater {
  template <typename T>
  static bool apply(T a, T b) {
    return a > b;
  }
};

struct GreaterOrEqual {
  template <typename T>
  static bool apply(T a, T b) {
    return a >= b;
  }
};

struct BitAnd {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};

struct BitOr {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};

struct BitXor {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

struct ShiftLeft {
  template <typename T>
  static T apply(T a, T b) {
    if (b < T{0} || static_cast<std::uint64_t>(b) >= sizeof(T) * 8) return 0;
    return static_cast<T>(static_cast<Wrapping<T>>(a) << b);
  }
};

struct ShiftRight {
  template <typename T>
  static T apply(T a, T b) {
    if (b < T{0} || static_cast<std::uint64_t>(b) >= sizeof(T) * 8) return a < T{0} ? T(-1) : T{0};
    return static_cast<T>(a >> b);
  }
};

struct PRelu {
  template <typename T>
  static T apply(T a, T b) {
    return a < T{0} ? Mul::apply(a, b) : a;
  }
};

struct Power {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return b == 2 ? a * a : std::pow(a, b);
    } else {
      return integer_power(a, b);
    }
  }

  /// Wraps; a negative exponent leaves what truncation leaves of the fraction.
  static std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    std::uint64_t result = 1;
    auto factor = static_cast<std::uint64_t>(base);
    for (; exponent != 0; exponent >>= 1) {
      if ((exponent & 1) != 0) result *= factor;
      factor *= factor;
    }
    return static_cast<std::int64_t>(result);
  }
};

/// How many runs an operator needs: signless ones do the same for signed and unsigned integers.
enum class Ints { None, Signless, All };

constexpr DType unsigned_of(DType dtype) {
  switch (dtype) {
    case DType::Bool:
    case DType::Int8: return DType::UInt8;
    case DType::Int16: return DType::UInt16;
    case DType::Int32: return DType::UInt32;
    case DType::Int64: return DType::UInt64;
    default: return dtype;
  }
}

template <typename F, typename T, bool is_test>
constexpr BinaryRun kRun = run_binary<F, T, std::conditional_t<is_test, bool, T>>;

/// The run of F for elements of `dtype`, null where F has none. Narrow floats run as float32.
template <typename F, Ints ints, bool has_floats, bool is_test = false>
BinaryRun run_of(DType dtype) {
  if constexpr (has_floats) {
    if (dtype == DType::Float64) return kRun<F, double, is_test>;
    if (contains(kFloatsBf16, dtype)) return kRun<F, float, is_test>;
  }
  if constexpr (ints != Ints::None) {
    switch (ints == Ints::Signless ? unsigned_of(dtype) : dtype) {
      case DType::UInt8: return kRun<F, std::uint8_t, is_test>;
      case DType::UInt16: return kRun<F, std::uint16_t, is_test>;
      case DType::UInt32: return kRun<F, std::uint32_t, is_test>;
      case DType::UInt64: return kRun<F, std::uint64_t, is_test>;
      default: break;
    }
  }
  if constexpr (ints == Ints::All) {
    switch (dtype) {
      case DType::Int8: return kRun<F, std::int8_t, is_test>;
      case DType::Int16: return kRun<F, std::int16_t, is_test>;
      case DType::Int32: return kRun<F, std::int32_t, is_test>;
      case DType::Int64: return kRun<F, std::int64_t, is_test>;
      default: break;
    }
  }
  return nullptr;
}

DType compute_type(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16 ? DType::Float32 : dtype;
}

Status no_run(const EvalContext& context) {
  return context.error("{} does not take tensor({})", context.node().op_type,
                       dtype_name(context.tensor(0).dtype()));
}

template <typename F, Ints ints, bool has_floats = true>
Status evaluate_arithmetic(EvalContext& context) {
  const DType dtype = context.tensor(0).dtype();
  const BinaryRun run = run_of<F, ints, has_floats>(dtype);
  if (run == nullptr) return no_run(context);
  return evaluate_binary(context, run, compute_type(dtype), compute_type(dtype));
}

template <typename F, Ints ints, bool has_floats = true>
Status evaluate_test(EvalContext& context) {
  const DType dtype = context.tensor(0).dtype();
  const BinaryRun run = run_of<F, ints, has_floats, true>(dtype);
  if (run == nullptr) return no_run(context);
  return evaluate_binary(context, run, compute_type(dtype), DType::Bool);
}

Status check_divisor(const EvalContext& context) {
  const Tensor& b = context.tensor(1);
  if (!contains(kInts, b.dtype()) || context.tensor(0).element_count() == 0) return {};
  const std::int64_t count = b.element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    if (read_int(b.dtype(), b.data(), i) == 0) return context.error("integer division by zero");
  }
  return {};
}

Status evaluate_div(EvalContext& context) {
  SDX_TRY(check_divisor(context));
  return evaluate_arithmetic<Div, Ints::All>(context);
}

Status evaluate_mod(EvalContext& context) {
  SDX_TRY(check_divisor(context));
  const std::int64_t fmod = context.attributes().get_int("fmod", 0);
  if (fmod == 0) return evaluate_arithmetic<FloorMod, Ints::All>(context);
  if (fmod == 1) return evaluate_arithmetic<TruncatedMod, Ints::All>(context);
  return context.error("fmod should be 0 or 1, but is {}", fmod);
}

Status evaluate_bit_shift(EvalContext& context) {
  const std::string direction = context.attributes().get_string("direction", "");
  if (direction == "LEFT") return evaluate_arithmetic<ShiftLeft, Ints::All, false>(context);
  if (direction == "RIGHT") return evaluate_arithmetic<ShiftRight, Ints::All, false>(context);
  return context.error("direction should be 'LEFT' or 'RIGHT', but is '{}'", direction);
}

Status evaluate_equal_strings(EvalContext& context) {
  const auto a = context.tensor(0).values<std::string>();
  const auto b = context.tensor(1).values<std::string>();
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const std::array shapes = {context.tensor(0).shape(), context.tensor(1).shape()};
  const BroadcastPlan plan = plan_broadcast(y->shape(), shapes);
  const auto results = y->mutable_values<bool>();
  for_each_run(plan, [&](std::int64_t at_y, const auto& at) {
    for (std::int64_t i = 0; i < plan.run; ++i) {
      const auto ia = static_cast<std::size_t>(at[0] + (plan.moves[0] ? i : 0));
      const auto ib = static_cast<std::size_t>(at[1] + (plan.moves[1] ? i : 0));
      results[static_cast<std::size_t>(at_y + i)] = a[ia] == b[ib];
    }
  });
  return {};
}

Status evaluate_equal(EvalContext& context) {
  if (context.tensor(0).dtype() == DType::String) return evaluate_equal_strings(context);
  return evaluate_test<Equal, Ints::Signless>(context);
}

/// Base and exponent may differ in type: integers among themselves as int64, float with float as
/// the base's type, all else as double.
Status evaluate_pow(EvalContext& context) {
  const DType base = context.tensor(0).dtype();
  const DType exponent = context.tensor(1).dtype();
  if (contains(kInts, base) && contains(kInts, exponent)) {
    return evaluate_binary(context, run_binary<Power, std::int64_t>, DType::Int64, DType::Int64);
  }
  constexpr DTypeSet kAsFloat = set_of(DType::Float32, DType::Float16, DType::BFloat16);
  if (contains(kAsFloat, base) && contains(kAsFloat, exponent)) {
    return evaluate_binary(context, run_binary<Power, float>, DType::Float32, DType::Float32);
  }
  return evaluate_binary(context, run_binary<Power, double>, DType::Float64, DType::Float64);
}

/// The slope broadcasts to x and never the other way; up to version 6 one of rank 1 is per channel.
Result<Shape> slope_shape(const Shape& x, const Shape& slope, int version) {
  Shape shape = slope;
  const bool is_per_channel = version < 7 && slope.rank() == 1 && slope[0] != 1 && x.rank() > 1;
  if (is_per_channel) {
    for (int i = 2; i < x.rank(); ++i) shape.push_back(1);
  }
  const auto result = broadcast(x, shape);
  bool fits = result && result->rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) {
    fits = !is_known(x[i]) || !is_known((*result)[i]) || x[i] == (*result)[i];
  }
  if (fits) return shape;
  return failure(Code::InvalidModel, "a slope of shape {} does not broadcast to {}",
                 slope.to_string(), x.to_string());
}

Status infer_prelu(InferContext& context) {
  const Shape* x = context.shape(0);
  const Shape* slope = context.shape(1);
  if (x != nullptr && slope != nullptr) {
    SDX_TRY(slope_shape(*x, *slope, context.version()).take_status());
  }
  return infer_same_shape(context);
}

Status evaluate_prelu(EvalContext& context) {
  const DType dtype = context.tensor(0).dtype();
  const DType compute = compute_type(dtype);
  const BinaryRun run = run_of<PRelu, Ints::All, true>(dtype);
  if (run == nullptr) return no_run(context);
  SDX_ASSIGN(const Shape shape, slope_shape(context.tensor(0).shape(), context.tensor(1).shape(),
                                            context.version()));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  if (dtype == compute) {
    broadcast_run(run, context.tensor(0), context.tensor(1).reshaped(shape), *y);
    return {};
  }
  SDX_ASSIGN(Tensor x, to_dtype(context.tensor(0), compute));
  SDX_ASSIGN(const Tensor slope, to_dtype(context.tensor(1), compute));
  broadcast_run(run, x, slope.reshaped(shape), x);
  convert_elements(compute, x.data(), dtype, y->mutable_data(), y->element_count());
  return {};
}

constexpr OpSchema kRows[] = {
    {"", "Add", 1, {"TT>T", kFloats}, "axis:i broadcast:i consumed_inputs:is", infer_binary,
     evaluate_arithmetic<Add, Ints::Signless>},
    {"", "Add", 6, {"TT>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axis:i broadcast:i", infer_binary, evaluate_arithmetic<Add, Ints::Signless>},
    {"", "Add", 7, {"TT>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "", infer_binary, evaluate_arithmetic<Add, Ints::Signless>},
    {"", "Add", 13, {"TT>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "", infer_binary, evaluate_arithmetic<Add, Ints::Signless>},
    {"", "Add", 14, {"TT>T", kNumericBf16}, "", infer_binary,
     evaluate_arithmetic<Add, Ints::Signless>},
    {"", "And", 1, {"BB>B"}, "axis:i broadcast:i", infer_binary,
     evaluate_arithmetic<BitAnd, Ints::Signless, false>},
    {"", "And", 7, {"BB>B"}, "", infer_binary, evaluate_arithmetic<BitAnd, Ints::Signless, false>},
    {"", "BitShift", 11, {"TT>T", kUnsignedInts}, "direction:s!", infer_binary, evaluate_bit_shift},
    {"", "BitShift", 28, {"TT>T", kInts}, "direction:s!", infer_binary, evaluate_bit_shift},
    {"", "BitwiseAnd", 18, {"TT>T", kInts}, "", infer_binary,
     evaluate_arithmetic<BitAnd, Ints::Signless, false>},
    {"", "BitwiseOr", 18, {"TT>T", kInts}, "", infer_binary,
     evaluate_arithmetic<BitOr, Ints::Signless, false>},
    {"", "BitwiseXor", 18, {"TT>T", kInts}, "", infer_binary,
     evaluate_arithmetic<BitXor, Ints::Signless, false>},
    {"", "Div", 1, {"TT>T", kFloats}, "axis:i broadcast:i consumed_inputs:is", infer_binary,
     evaluate_div},
    {"", "Div", 6, {"TT>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axis:i broadcast:i", infer_binary, evaluate_div},
    {"", "Div", 7, {"TT>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "", infer_binary, evaluate_div},
    {"", "Div", 13, {"TT>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "", infer_binary, evaluate_div},
    {"", "Div", 14, {"TT>T", kNumericBf16}, "", infer_binary, evaluate_div},
    {"", "Equal", 1, {"TT>B", set_of(DType::Int32, DType::Int64, DType::Bool)},
     "axis:i broadcast:i", infer_binary, evaluate_equal},
    {"", "Equal", 7, {"TT>B", set_of(DType::Int32, DType::Int64, DType::Bool)}, "", infer_binary,
     evaluate_equal},
    {"", "Equal", 11, {"TT>B", kNumeric | set_of(DType::Bool)}, "", infer_binary, evaluate_equal},
    {"", "Equal", 13, {"TT>B", kNumericBf16 | set_of(DType::Bool)}, "", infer_binary,
     evaluate_equal},
    {"", "Equal", 19, {"TT>B", kNumericBf16 | set_of(DType::Bool, DType::String)}, "", infer_binary,
     evaluate_equal},
    {"", "Greater", 1, {"TT>B", kFloats}, "axis:i broadcast:i", infer_binary,
     evaluate_test<Greater, Ints::All>},
    {"", "Greater", 7, {"TT>B", kFloats}, "", infer_binary, evaluate_test<Greater, Ints::All>},
    {"", "Greater", 9, {"TT>B", kNumeric}, "", infer_binary, evaluate_test<Greater, Ints::All>},
    {"", "Greater", 13, {"TT>B", kNumericBf16}, "", infer_binary,
     evaluate_test<Greater, Ints::All>},
    {"", "GreaterOrEqual", 12, {"TT>B", kNumeric}, "", infer_binary,
     evaluate_test<GreaterOrEqual, Ints::All>},
    {"", "GreaterOrEqual", 16, {"TT>B", kNumericBf16}, "", infer_binary,
     evaluate_test<GreaterOrEqual, Ints::All>},
    {"", "Less", 1, {"TT>B", kFloats}, "axis:i broadcast:i", infer_binary,
     evaluate_test<Less, Ints::All>},
    {"", "Less", 7, {"TT>B", kFloats}, "", infer_binary, evaluate_test<Less, Ints::All>},
    {"", "Less", 9, {"TT>B", kNumeric}, "", infer_binary, evaluate_test<Less, Ints::All>},
    {"", "Less", 13, {"TT>B", kNumericBf16}, "", infer_binary, evaluate_test<Less, Ints::All>},
    {"", "LessOrEqual", 12, {"TT>B", kNumeric}, "", infer_binary,
     evaluate_test<LessOrEqual, Ints::All>},
    {"", "LessOrEqual", 16, {"TT>B", kNumericBf16}, "", infer_binary,
     evaluate_test<LessOrEqual, Ints::All>},
    {"", "Mod", 10, {"TT>T", kNumeric}, "fmod:i", infer_binary, evaluate_mod},
    {"", "Mod", 13, {"TT>T", kNumericBf16}, "fmod:i", infer_binary, evaluate_mod},
    {"", "Mod", 28, {"TT>T", kNumericBf16}, "fmod:i", infer_binary, evaluate_mod},
    {"", "Mul", 1, {"TT>T", kFloats}, "axis:i broadcast:i consumed_inputs:is", infer_binary,
     evaluate_arithmetic<Mul, Ints::Signless>},
    {"", "Mul", 6, {"TT>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axis:i broadcast:i", infer_binary, evaluate_arithmetic<Mul, Ints::Signless>},
    {"", "Mul", 7, {"TT>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "", infer_binary, evaluate_arithmetic<Mul, Ints::Signless>},
    {"", "Mul", 13, {"TT>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "", infer_binary, evaluate_arithmetic<Mul, Ints::Signless>},
    {"", "Mul", 14, {"TT>T", kNumericBf16}, "", infer_binary,
     evaluate_arithmetic<Mul, Ints::Signless>},
    {"", "Or", 1, {"BB>B"}, "axis:i broadcast:i", infer_binary,
     evaluate_arithmetic<BitOr, Ints::Signless, false>},
    {"", "Or", 7, {"BB>B"}, "", infer_binary, evaluate_arithmetic<BitOr, Ints::Signless, false>},
    {"", "PRelu", 1, {"TT>T", kFloats}, "consumed_inputs:is", infer_prelu, evaluate_prelu},
    {"", "PRelu", 6, {"TT>T", kFloats}, "", infer_prelu, evaluate_prelu},
    {"", "PRelu", 7, {"TT>T", kFloats}, "", infer_prelu, evaluate_prelu},
    {"", "PRelu", 9, {"TT>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "", infer_prelu, evaluate_prelu},
    {"", "PRelu", 16, {"TT>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "", infer_prelu, evaluate_prelu},
    {"", "Pow", 1, {"TT>T", kFloats}, "axis:i broadcast:i", infer_binary, evaluate_pow},
    {"", "Pow", 7, {"TT>T", kFloats}, "", infer_binary, evaluate_pow},
    {"", "Pow", 12, {"TU>T", kFloats | set_of(DType::Int32, DType::Int64), kNumeric}, "",
     infer_binary, evaluate_pow},
    {"", "Pow", 13, {"TU>T", kFloatsBf16 | set_of(DType::Int32, DType::Int64), kNumeric}, "",
     infer_binary, evaluate_pow},
    {"", "Pow", 15, {"TU>T", kFloatsBf16 | set_of(DType::Int32, DType::Int64), kNumericBf16}, "",
     infer_binary, evaluate_pow},
    {"", "Sub", 1, {"TT>T", kFloats}, "axis:i broadcast:i consumed_inputs:is", infer_binary,
     evaluate_arithmetic<Sub, Ints::Signless>},
    {"", "Sub", 6, {"TT>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axis:i broadcast:i", infer_binary, evaluate_arithmetic<Sub, Ints::Signless>},
    {"", "Sub", 7, {"TT>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "", infer_binary, evaluate_arithmetic<Sub, Ints::Signless>},
    {"", "Sub", 13, {"TT>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "", infer_binary, evaluate_arithmetic<Sub, Ints::Signless>},
    {"", "Sub", 14, {"TT>T", kNumericBf16}, "", infer_binary,
     evaluate_arithmetic<Sub, Ints::Signless>},
    {"", "Xor", 1, {"BB>B"}, "axis:i broadcast:i", infer_binary,
     evaluate_arithmetic<BitXor, Ints::Signless, false>},
    {"", "Xor", 7, {"BB>B"}, "", infer_binary, evaluate_arithmetic<BitXor, Ints::Signless, false>},
};

}  // namespace

std::span<const OpSchema> binary_schemas() { return kRows; }

}  // namespace sardonyx
