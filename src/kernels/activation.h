#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace sardonyx::kernels {

/// The functions that a kernel can apply to a result before it stores it.
enum class ActivationKind : std::uint8_t {
  None,
  Relu,
  Clip,         // min(max(x, alpha), beta)
  LeakyRelu,    // x < 0 ? alpha * x : x
  HardSigmoid,  // clip(alpha * x + beta, 0, 1)
  HardSwish,    // x * clip(x / 6 + 1 / 2, 0, 1)
  Sigmoid,
  Silu,  // x * sigmoid(x)
  Tanh,
  Gelu,      // x / 2 * (1 + erf(x / sqrt(2)))
  GeluTanh,  // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
};

/// An activation and its parameters, whose meaning depends on the kind.
struct Activation {
  ActivationKind kind = ActivationKind::None;
  float alpha = 0;
  float beta = 0;
};

/// Whether the function is a clamp to a range (None has the whole range), which kernels apply in
/// registers.
constexpr bool is_clamp(ActivationKind kind) { return kind <= ActivationKind::Clip; }

/// The range of a clamp; the whole line for every other kind.
struct ClampRange {
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};
constexpr ClampRange clamp_range(const Activation& activation) {
  ClampRange range;
  if (activation.kind == ActivationKind::Relu) range.low = 0;
  if (activation.kind == ActivationKind::Clip) range = {activation.alpha, activation.beta};
  return range;
}

/// The value of the activation at x, by the C library. Vector kernels agree to a relative 2e-6
/// (1e-5 for the two Gelu below -2, where they decay; for the two Hard ones relative to the
/// argument) plus 1e-30. A NaN stays a NaN, and infinities give what the formula gives.
inline float apply(const Activation& activation, float x) {
  const float alpha = activation.alpha;
  const float beta = activation.beta;
  const auto clamp = [](float v, float low, float high) {
    v = v < low ? low : v;
    return v > high ? high : v;
  };
  switch (activation.kind) {
    case ActivationKind::None: return x;
    case ActivationKind::Relu: return x < 0 ? 0 : x;
    case ActivationKind::Clip: return clamp(x, alpha, beta);
    case ActivationKind::LeakyRelu: return x < 0 ? alpha * x : x;
    case ActivationKind::HardSigmoid: return clamp(alpha * x + beta, 0, 1);
    case ActivationKind::HardSwish: return x * clamp(x * (1.0F / 6) + 0.5F, 0, 1);
    case ActivationKind::Sigmoid: return 1 / (1 + std::exp(-x));
    case ActivationKind::Silu: return x / (1 + std::exp(-x));
    case ActivationKind::Tanh: return std::tanh(x);
    case ActivationKind::Gelu: return 0.5F * x * std::erfc(x * -0.70710678118654752F);
    case ActivationKind::GeluTanh: {
      const float u = 0.79788456080286536F * (x + 0.044715F * x * x * x);
      return x / (1 + std::exp(-2 * u));
    }
  }
  return x;
}

}  // namespace sardonyx::kernels
