#pragma once

#include <cmath>
#include <numbers>

namespace sardonyx {

/// Activation functions of one float or double; a NaN gives a NaN.
template <typename T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

/// log(1 + exp(x)) without overflow.
template <typename T>
T softplus(T x) {
  return std::log1p(std::exp(-std::fabs(x))) + (x < 0 ? T{0} : x);
}

/// x * P(X <= x) for a standard normal X.
template <typename T>
T gelu(T x) {
  return T{0.5} * x * (1 + std::erf(x * std::numbers::sqrt2_v<T> / 2));
}

/// The approximation of gelu by tanh.
template <typename T>
T gelu_tanh(T x) {
  const T inner =
      std::numbers::sqrt2_v<T> * std::numbers::inv_sqrtpi_v<T> * (x + T(0.044715) * x * x * x);
  return T{0.5} * x * (1 + std::tanh(inner));
}

/// min(max(x, low), high) as numpy's: a NaN in any of them is the result.
template <typename T>
T clamp_real(T x, T low, T high) {
  const T raised = x > low || std::isnan(x) ? x : low;
  return raised < high || std::isnan(raised) ? raised : high;
}

}  // namespace sardonyx
