#pragma once

#include <cstdint>
#include <limits>

#include "kernels/activation_simd.h"
#include "kernels/rnn.h"

// Parts of recurrent steps as templates over a vector type V. Only kernel sources include this; the
// unnamed namespace keeps what each instruction set compiles apart.
namespace sardonyx::kernels {
namespace {

/// A gate's function after the clip.
template <class V>
struct Gate {
  Activation function;
  float limit;

  Gate(const Activation& activation, float clip)
      : function(activation), limit(clip > 0 ? clip : std::numeric_limits<float>::infinity()) {}

  typename V::Reg operator()(typename V::Reg x) const {
    x = V::min(V::set(limit), V::max(V::set(-limit), x));
    return activate<V>(function, x);
  }
};

/// x + weights * state if there are weights.
template <class V>
inline typename V::Reg peep(typename V::Reg x, const float* weights, typename V::Reg state,
                            std::int64_t n) {
  return weights == nullptr ? x : V::fma(V::load_n(weights, n), state, x);
}

/// x[at, at + n) and what else is there.
template <class V>
inline typename V::Reg sum_of(const float* x, const float* y, const float* z, std::int64_t at,
                              std::int64_t n) {
  auto sum = V::load_n(x + at, n);
  if (y != nullptr) sum = V::add(sum, V::load_n(y + at, n));
  if (z != nullptr) sum = V::add(sum, V::load_n(z + at, n));
  return sum;
}

inline const float* row_of(const float* rows, std::int64_t stride, std::int64_t row) {
  return rows == nullptr ? nullptr : rows + row * stride;
}

template <class V>
void lstm_rows(const LstmArgs& args, std::int64_t first, std::int64_t last) {
  const Gate<V> gate(args.gate, args.clip);
  const Gate<V> candidate(args.candidate, args.clip);
  const std::int64_t hidden = args.hidden;
  const auto peepholes = [&](std::int64_t which, std::int64_t j) {
    return args.peepholes == nullptr ? nullptr : args.peepholes + which * hidden + j;
  };
  for (std::int64_t row = first; row < last; ++row) {
    const float* gates = args.gates + row * args.gates_stride;
    const float* input = row_of(args.input, args.input_stride, row);
    const float* c_before = args.c_before + row * args.c_before_stride;
    float* c_out = args.c + row * args.c_stride;
    float* h_out = args.h + row * args.h_stride;
    for (std::int64_t j = 0; j < hidden; j += V::kLanes) {
      const std::int64_t n = hidden - j;
      const auto sum = [&](std::int64_t which) {
        return sum_of<V>(gates, input, args.bias, which * hidden + j, n);
      };
      const auto before = V::load_n(c_before + j, n);
      const auto i = gate(peep<V>(sum(0), peepholes(0, j), before, n));
      const auto f = args.input_forget ? V::sub(V::set(1), i)
                                       : gate(peep<V>(sum(2), peepholes(2, j), before, n));
      const auto g = candidate(sum(3));
      const auto c = V::fma(i, g, V::mul(f, before));
      const auto o = gate(peep<V>(sum(1), peepholes(1, j), c, n));
      V::store_n(c_out + j, c, n);
      V::store_n(h_out + j, V::mul(o, activate<V>(args.output, c)), n);
    }
  }
}

template <class V>
void gru_reset_rows(const GruResetArgs& args, std::int64_t first, std::int64_t last) {
  const Gate<V> gate(args.gate, args.clip);
  for (std::int64_t row = first; row < last; ++row) {
    float* gates = args.gates + row * args.gates_stride;
    const float* input = row_of(args.input, args.input_stride, row);
    const float* operand = args.operand + row * args.operand_stride;
    const float* addend = row_of(args.addend, args.addend_stride, row);
    float* reset = args.reset + row * args.reset_stride;
    for (std::int64_t j = 0; j < args.hidden; j += V::kLanes) {
      const std::int64_t n = args.hidden - j;
      const auto z = gate(sum_of<V>(gates, input, args.bias, j, n));
      const auto r = gate(sum_of<V>(gates, input, args.bias, args.hidden + j, n));
      const auto x = sum_of<V>(operand, args.operand_bias, nullptr, j, n);
      const auto product = addend == nullptr
                               ? V::mul(r, x)
                               : V::fma(r, x, sum_of<V>(addend, args.addend_bias, nullptr, j, n));
      V::store_n(gates + j, z, n);
      V::store_n(reset + j, product, n);
    }
  }
}

template <class V>
void gru_output_rows(const GruOutputArgs& args, std::int64_t first, std::int64_t last) {
  const Gate<V> candidate(args.candidate, args.clip);
  for (std::int64_t row = first; row < last; ++row) {
    const float* z_row = args.z + row * args.z_stride;
    const float* sums = args.sums + row * args.sums_stride;
    const float* addend = row_of(args.addend, args.addend_stride, row);
    const float* before = args.h_before + row * args.h_before_stride;
    float* h = args.h + row * args.h_stride;
    for (std::int64_t j = 0; j < args.hidden; j += V::kLanes) {
      const std::int64_t n = args.hidden - j;
      const auto z = V::load_n(z_row + j, n);
      const auto sum = sum_of<V>(sums, addend, args.addend_bias, j, n);
      const auto fresh = V::mul(V::sub(V::set(1), z), candidate(sum));
      V::store_n(h + j, V::fma(z, V::load_n(before + j, n), fresh), n);
    }
  }
}

}  // namespace
}  // namespace sardonyx::kernels
