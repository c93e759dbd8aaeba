#pragma once

#include <cmath>
#include <limits>

#include "kernels/activation_simd.h"
#include "kernels/elementwise.h"

// Elementwise functions as templates over a vector type; see activation_simd.h.
namespace sardonyx::kernels {

/// e^x with overflow to infinity and gradual underflow: the square of e^(x / 2).
template <class V>
inline typename V::Reg exp_full(typename V::Reg x) {
  const auto half = exp_clamped<V>(V::mul(x, V::set(0.5F)));
  return V::mul(half, half);
}

/// erf by 2 * gelu(x * sqrt(2)) / (x * sqrt(2)) - 1 would divide by 0: the tail is taken directly.
template <class V>
inline typename V::Reg erf(typename V::Reg x) {
  constexpr float kSmall[] = {1.12837917F,    -0.376126389F,  0.112837917F,
                              -0.0268661706F, 0.00522397762F, -0.000854832701F};
  constexpr float kTerms[] = {-1.2654624F,   0.99891764F,  0.38425165F, 0.045751378F, -0.030778311F,
                              -0.021213705F, -0.76631939F, 1.2084864F,  -0.70248801F, 0.14885467F};
  const auto z = V::abs(x);
  const auto one = V::set(1);
  const auto t = V::div(one, V::fma(z, V::set(0.5F), one));
  const auto square = V::mul(x, x);
  const auto exponent = V::fma(square, V::set(-1), polynomial<V>(t, kTerms));
  const auto large = V::sub(one, V::mul(t, exp_clamped<V>(exponent)));
  const auto small = V::mul(x, polynomial<V>(square, kSmall));
  return V::select(V::less(z, V::set(0.5F)), small, V::with_sign_of(large, x));
}

template <class V, class Function>
inline void map(const float* x, float* y, std::int64_t count, Function function) {
  std::int64_t i = 0;
  for (; i + V::kLanes <= count; i += V::kLanes) V::store(y + i, function(V::load(x + i)));
  if (i < count) V::store_n(y + i, function(V::load_n(x + i, count - i)), count - i);
}

template <class V>
void activate_run(const Activation& activation, const float* x, float* y, std::int64_t count) {
  const Activation copy = activation;
  map<V>(x, y, count, [&](typename V::Reg v) { return activate<V>(copy, v); });
}

template <class Function>
inline void map_scalar(const float* x, float* y, std::int64_t count, Function function) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = function(x[i]);
}

template <class V>
void unary_run(UnaryKind kind, const float* x, float* y, std::int64_t count) {
  switch (kind) {
    case UnaryKind::Exp:
      return map<V>(x, y, count, [](typename V::Reg v) { return exp_full<V>(v); });
    case UnaryKind::Erf: return map<V>(x, y, count, [](typename V::Reg v) { return erf<V>(v); });
    case UnaryKind::Reciprocal:
      return map<V>(x, y, count, [](typename V::Reg v) { return V::div(V::set(1), v); });
    case UnaryKind::Abs: return map<V>(x, y, count, [](typename V::Reg v) { return V::abs(v); });
    case UnaryKind::Neg: return map_scalar(x, y, count, [](float v) { return -v; });
    case UnaryKind::Sqrt:
      return map_scalar(x, y, count, [](float v) { return __builtin_sqrtf(v); });
    case UnaryKind::Log: return map_scalar(x, y, count, [](float v) { return __builtin_logf(v); });
    case UnaryKind::Sin: return map_scalar(x, y, count, [](float v) { return __builtin_sinf(v); });
    case UnaryKind::Cos: return map_scalar(x, y, count, [](float v) { return __builtin_cosf(v); });
    case UnaryKind::Floor:
      return map_scalar(x, y, count, [](float v) { return __builtin_floorf(v); });
    case UnaryKind::Ceil:
      return map_scalar(x, y, count, [](float v) { return __builtin_ceilf(v); });
    case UnaryKind::Softplus:
      return map_scalar(x, y, count, [](float v) {
        const float positive = v > 0 ? v : 0;
        return positive + __builtin_log1pf(__builtin_expf(v > 0 ? -v : v));
      });
  }
}

template <class V, class Function>
inline void combine(Repeat repeat, const float* a, const float* b, float* y, std::int64_t count,
                    Function function) {
  const auto fixed_a = V::set(repeat == Repeat::A && count > 0 ? *a : 0);
  const auto fixed_b = V::set(repeat == Repeat::B && count > 0 ? *b : 0);
  std::int64_t i = 0;
  if (repeat == Repeat::None) {
    for (; i + V::kLanes <= count; i += V::kLanes) {
      V::store(y + i, function(V::load(a + i), V::load(b + i)));
    }
  } else if (repeat == Repeat::A) {
    for (; i + V::kLanes <= count; i += V::kLanes) {
      V::store(y + i, function(fixed_a, V::load(b + i)));
    }
  } else {
    for (; i + V::kLanes <= count; i += V::kLanes) {
      V::store(y + i, function(V::load(a + i), fixed_b));
    }
  }
  if (i == count) return;
  const auto tail_a = repeat == Repeat::A ? fixed_a : V::load_n(a + i, count - i);
  const auto tail_b = repeat == Repeat::B ? fixed_b : V::load_n(b + i, count - i);
  V::store_n(y + i, function(tail_a, tail_b), count - i);
}

inline void pow_run(Repeat repeat, const float* a, const float* b, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    y[i] = __builtin_powf(a[repeat == Repeat::A ? 0 : i], b[repeat == Repeat::B ? 0 : i]);
  }
}

template <class V>
void binary_run(BinaryKind kind, Repeat repeat, const float* a, const float* b, float* y,
                std::int64_t count) {
  using Reg = typename V::Reg;
  const auto run = [&](auto function) { combine<V>(repeat, a, b, y, count, function); };
  switch (kind) {
    case BinaryKind::Add: return run([](Reg p, Reg q) { return V::add(p, q); });
    case BinaryKind::Sub: return run([](Reg p, Reg q) { return V::sub(p, q); });
    case BinaryKind::Mul: return run([](Reg p, Reg q) { return V::mul(p, q); });
    case BinaryKind::Div: return run([](Reg p, Reg q) { return V::div(p, q); });
    // The instructions return their second operand when either is a NaN.
    case BinaryKind::Min:
      return run([](Reg p, Reg q) { return V::select(V::is_nan(p), p, V::min(p, q)); });
    case BinaryKind::Max:
      return run([](Reg p, Reg q) { return V::select(V::is_nan(p), p, V::max(p, q)); });
    case BinaryKind::PRelu:
      return run([](Reg p, Reg q) { return V::select(V::less(p, V::set(0)), V::mul(p, q), p); });
    case BinaryKind::Pow:
      if (repeat == Repeat::B && count > 0 && *b == 2) {
        return map<V>(a, y, count, [](Reg p) { return V::mul(p, p); });
      }
      return pow_run(repeat, a, b, y, count);
  }
}

template <class V>
inline float horizontal_max(typename V::Reg v) {
  float lanes[V::kLanes];
  V::store(lanes, v);
  float best = lanes[0];
  for (int i = 1; i < V::kLanes; ++i) {
    if (!(lanes[i] <= best)) best = best != best ? best : lanes[i];
  }
  return best;
}

/// The largest element, NaN when there is one. Four partial results hide the latency.
template <class V>
inline float row_max(const float* x, std::int64_t columns) {
  constexpr int kParts = 4;
  typename V::Reg best[kParts];
  for (auto& part : best) part = V::set(-std::numeric_limits<float>::infinity());
  const auto larger = [](typename V::Reg a, typename V::Reg b) {
    return V::select(V::is_nan(a), a, V::max(a, b));
  };
  std::int64_t i = 0;
  for (; i + kParts * V::kLanes <= columns; i += kParts * V::kLanes) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) {
      best[part] = larger(best[part], V::load(x + i + part * V::kLanes));
    }
  }
  for (; i + V::kLanes <= columns; i += V::kLanes) best[0] = larger(best[0], V::load(x + i));
  float result = horizontal_max<V>(larger(larger(best[0], best[1]), larger(best[2], best[3])));
  for (; i < columns; ++i) {
    if (!(x[i] <= result)) result = result != result ? result : x[i];
  }
  return result;
}

template <class V, class Term>
inline float row_sum(const float* x, std::int64_t columns, Term term) {
  auto first = V::set(0);
  auto second = V::set(0);
  std::int64_t i = 0;
  for (; i + 2 * V::kLanes <= columns; i += 2 * V::kLanes) {
    first = V::add(first, term(V::load(x + i)));
    second = V::add(second, term(V::load(x + i + V::kLanes)));
  }
  for (; i + V::kLanes <= columns; i += V::kLanes) first = V::add(first, term(V::load(x + i)));
  float sum = V::sum(V::add(first, second));
  if (i < columns) {
    float tail[V::kLanes] = {};
    V::store(tail, term(V::load_n(x + i, columns - i)));
    for (std::int64_t j = 0; j < columns - i; ++j) sum += tail[j];
  }
  return sum;
}

template <class V>
void softmax_run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  using Reg = typename V::Reg;
  for (std::int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
    const float largest = row_max<V>(x, columns);
    const auto shift = V::set(largest);
    const auto power = [&](Reg v) {
      const auto difference = V::sub(v, shift);
      // A masked element must be exactly 0, however the exponential is clamped.
      return V::select(V::less(difference, V::set(-87.0F)), V::set(0), exp_clamped<V>(difference));
    };
    auto first = V::set(0);
    auto second = V::set(0);
    std::int64_t i = 0;
    for (; i + 2 * V::kLanes <= columns; i += 2 * V::kLanes) {
      const auto p = power(V::load(x + i));
      const auto q = power(V::load(x + i + V::kLanes));
      V::store(y + i, p);
      V::store(y + i + V::kLanes, q);
      first = V::add(first, p);
      second = V::add(second, q);
    }
    float sum = V::sum(V::add(first, second));
    for (; i < columns; i += V::kLanes) {
      const std::int64_t count = columns - i < V::kLanes ? columns - i : V::kLanes;
      V::store_n(y + i, power(V::load_n(x + i, count)), count);
      for (std::int64_t j = i; j < i + count; ++j) sum += y[j];
    }
    const auto scale = V::set(1 / sum);
    map<V>(y, y, columns, [&](Reg v) { return V::mul(v, scale); });
  }
}

template <class V>
void normalize_run(const NormArgs& args, const float* x, float* y, std::int64_t rows) {
  using Reg = typename V::Reg;
  const auto columns = static_cast<float>(args.columns);
  for (std::int64_t row = 0; row < rows; ++row, x += args.columns, y += args.columns) {
    const float mean =
        args.subtracts_mean ? row_sum<V>(x, args.columns, [](Reg v) { return v; }) / columns : 0;
    const auto shift = V::set(mean);
    const float squares = row_sum<V>(x, args.columns, [&](Reg v) {
      const auto d = V::sub(v, shift);
      return V::mul(d, d);
    });
    const auto scale = V::set(1 / __builtin_sqrtf(squares / columns + args.epsilon));
    std::int64_t i = 0;
    const auto finish = [&](Reg v, Reg gain, Reg bias) {
      return V::fma(V::mul(V::sub(v, shift), scale), gain, bias);
    };
    for (; i + V::kLanes <= args.columns; i += V::kLanes) {
      const auto bias = args.bias != nullptr ? V::load(args.bias + i) : V::set(0);
      V::store(y + i, finish(V::load(x + i), V::load(args.scale + i), bias));
    }
    if (i < args.columns) {
      const std::int64_t rest = args.columns - i;
      const auto bias = args.bias != nullptr ? V::load_n(args.bias + i, rest) : V::set(0);
      V::store_n(y + i, finish(V::load_n(x + i, rest), V::load_n(args.scale + i, rest), bias),
                 rest);
    }
  }
}

template <class V>
void reduce_rows_run(ReduceKind kind, const float* x, float* y, std::int64_t rows,
                     std::int64_t columns) {
  using Reg = typename V::Reg;
  for (std::int64_t row = 0; row < rows; ++row, x += columns) {
    switch (kind) {
      case ReduceKind::Sum: y[row] = row_sum<V>(x, columns, [](Reg v) { return v; }); break;
      case ReduceKind::SumSquare:
        y[row] = row_sum<V>(x, columns, [](Reg v) { return V::mul(v, v); });
        break;
      case ReduceKind::Max: y[row] = row_max<V>(x, columns); break;
      case ReduceKind::Min: {
        float least = std::numeric_limits<float>::infinity();
        for (std::int64_t i = 0; i < columns; ++i) {
          if (!(x[i] >= least)) least = least != least ? least : x[i];
        }
        y[row] = least;
        break;
      }
    }
  }
}

template <class V>
void reduce_columns_run(ReduceKind kind, const float* x, float* y, std::int64_t rows,
                        std::int64_t columns, std::int64_t x_stride) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float start = kind == ReduceKind::Max ? -infinity : kind == ReduceKind::Min ? infinity : 0;
  for (std::int64_t i = 0; i < columns; ++i) y[i] = start;
  for (std::int64_t row = 0; row < rows; ++row, x += x_stride) {
    switch (kind) {
      case ReduceKind::Sum: binary_run<V>(BinaryKind::Add, Repeat::None, y, x, y, columns); break;
      case ReduceKind::Max: binary_run<V>(BinaryKind::Max, Repeat::None, y, x, y, columns); break;
      case ReduceKind::Min: binary_run<V>(BinaryKind::Min, Repeat::None, y, x, y, columns); break;
      case ReduceKind::SumSquare:
        combine<V>(Repeat::None, y, x, y, columns,
                   [](typename V::Reg p, typename V::Reg q) { return V::fma(q, q, p); });
        break;
    }
  }
}

template <class V>
constexpr ElementwiseTable make_elementwise_table(Isa isa) {
  return {isa,
          activate_run<V>,
          unary_run<V>,
          binary_run<V>,
          softmax_run<V>,
          normalize_run<V>,
          reduce_rows_run<V>,
          reduce_columns_run<V>};
}

}  // namespace sardonyx::kernels
