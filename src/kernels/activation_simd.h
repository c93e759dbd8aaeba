#pragma once

#include <cstdint>

#include "kernels/activation.h"

// Activations on vector registers, as templates over a vector type V of one instruction set
// (generic::F32, avx2::F32, avx512::F32). Only kernel sources include this.
namespace sardonyx::kernels {

/// c[0] + c[1] * x + ...
template <class V, int kTerms>
inline typename V::Reg polynomial(typename V::Reg x, const float (&c)[kTerms]) {
  typename V::Reg sum = V::set(c[kTerms - 1]);
#pragma GCC unroll 16
  for (int i = kTerms - 2; i >= 0; --i) sum = V::fma(sum, x, V::set(c[i]));
  return sum;
}

/// e^x with a relative error of 2e-7; infinite above 88.4, but never 0: x is clamped to -87.3.
template <class V>
inline typename V::Reg exp_clamped(typename V::Reg x) {
  constexpr float kTerms[] = {1.0F,         1.0F,          0.49999991F,  0.16666416F,
                              0.041668244F, 0.0083750365F, 0.0013836564F};
  // At the upper bound n is 128, whose power of two is the bit pattern of infinity.
  x = V::min(V::set(88.7F), V::max(V::set(-87.3F), x));
  const auto n = V::round(V::mul(x, V::set(1.44269504F)));
  auto r = V::fma(n, V::set(-0.693359375F), x);
  r = V::fma(n, V::set(2.12194440e-4F), r);
  return V::mul(polynomial<V>(r, kTerms), V::pow2(n));
}

template <class V>
inline typename V::Reg sigmoid(typename V::Reg x) {
  const auto one = V::set(1);
  return V::div(one, V::add(one, exp_clamped<V>(V::sub(V::set(0), x))));
}

template <class V>
inline typename V::Reg tanh(typename V::Reg x) {
  constexpr float kTerms[] = {1.0F,          -0.33333260F, 0.13331129F,
                              -0.053721137F, 0.020591170F, -0.0056601572F};
  const auto magnitude = V::abs(x);
  const auto small = V::mul(x, polynomial<V>(V::mul(x, x), kTerms));
  const auto one = V::set(1);
  const auto e = exp_clamped<V>(V::add(magnitude, magnitude));
  const auto large = V::sub(one, V::div(V::set(2), V::add(e, one)));
  return V::select(V::less(magnitude, V::set(0.625F)), small, V::with_sign_of(large, x));
}

/// x / 2 * (1 + erf(x / sqrt(2))), by erfc(z) = t * exp(-z^2 + P(t)), t = 1 / (1 + z / 2).
template <class V>
inline typename V::Reg gelu(typename V::Reg x) {
  constexpr float kTerms[] = {-1.2654624F,   0.99891764F,  0.38425165F, 0.045751378F, -0.030778311F,
                              -0.021213705F, -0.76631939F, 1.2084864F,  -0.70248801F, 0.14885467F};
  const auto z = V::mul(V::abs(x), V::set(0.70710678F));
  const auto one = V::set(1);
  const auto t = V::div(one, V::fma(z, V::set(0.5F), one));
  // z^2 is halved x^2, which is rounded once, not twice.
  const auto exponent = V::fma(V::mul(x, x), V::set(-0.5F), polynomial<V>(t, kTerms));
  // Finite for an infinite x, where t is 0.
  const auto half = V::min(V::set(1e38F), V::mul(x, V::set(0.5F)));
  const auto tail = V::mul(half, V::mul(t, exp_clamped<V>(exponent)));
  return V::select(V::less(x, V::set(0)), tail, V::sub(x, tail));
}

template <class V>
inline typename V::Reg activate(const Activation& activation, typename V::Reg x) {
  const auto alpha = V::set(activation.alpha);
  const auto beta = V::set(activation.beta);
  const auto zero = V::set(0);
  const auto one = V::set(1);
  switch (activation.kind) {
    case ActivationKind::None: return x;
    case ActivationKind::Relu: return V::max(zero, x);
    case ActivationKind::Clip: return V::min(beta, V::max(alpha, x));
    case ActivationKind::LeakyRelu: return V::select(V::less(x, zero), V::mul(alpha, x), x);
    case ActivationKind::HardSigmoid: return V::min(one, V::max(zero, V::fma(alpha, x, beta)));
    case ActivationKind::HardSwish: {
      const auto gate = V::fma(x, V::set(1.0F / 6), V::set(0.5F));
      return V::mul(x, V::min(one, V::max(zero, gate)));
    }
    case ActivationKind::Sigmoid: return sigmoid<V>(x);
    case ActivationKind::Silu: return V::mul(x, sigmoid<V>(x));
    case ActivationKind::Tanh: return tanh<V>(x);
    case ActivationKind::Gelu: return gelu<V>(x);
    case ActivationKind::GeluTanh: {
      const auto cubic = V::fma(V::mul(V::mul(x, x), V::set(0.044715F)), x, x);
      return V::mul(x, sigmoid<V>(V::mul(cubic, V::set(1.59576912F))));
    }
  }
  return x;
}

/// Applies the activation in place to a block of floats.
template <class V>
[[gnu::noinline]] void activate_block(const Activation& activation, float* c, std::int64_t stride,
                                      std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row, c += stride) {
    std::int64_t j = 0;
    for (; j + V::kLanes <= columns; j += V::kLanes) {
      V::store(c + j, activate<V>(activation, V::load(c + j)));
    }
    if (j < columns) {
      V::store_n(c + j, activate<V>(activation, V::load_n(c + j, columns - j)), columns - j);
    }
  }
}

}  // namespace sardonyx::kernels
