#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "ir/attribute.h"

namespace sardonyx {

/// An elementwise function with up to two numbers, as recurrent and fused operators name it.
class Activation {
 public:
  /// f(x) = x.
  Activation() = default;
  /// By the names of ONNX's RNN (Relu, Tanh, Sigmoid, Affine, LeakyRelu, ThresholdedRelu,
  /// ScaledTanh, HardSigmoid, Elu, Softsign, Softplus) and of fused operators (Clip, Gelu,
  /// FastGelu, HardSwish, Silu), letter case aside. A missing number is that operator's
  /// default.
  /// Errors   Unsupported when the name is none of these.
  static Result<Activation> of(std::string_view name, const float* alpha, const float* beta);
  /// From the attributes `activation` and `activation_params` (or `activation_alpha`, ...).
  static Result<Activation> of_node(const Attributes& attributes);

  bool is_identity() const { return kind_ == Kind::Identity; }
  void apply(float* values, std::int64_t count) const;
  void apply(double* values, std::int64_t count) const;
  /// How many of (alpha, beta) the function reads from an RNN's lists.
  int alpha_count() const;
  int beta_count() const;

 private:
  enum class Kind : std::uint8_t {
    Identity,
    Relu,
    Tanh,
    Sigmoid,
    Affine,
    LeakyRelu,
    ThresholdedRelu,
    ScaledTanh,
    HardSigmoid,
    Elu,
    Softsign,
    Softplus,
    Clip,
    Gelu,
    FastGelu,
    HardSwish,
    Silu
  };
  struct Row;
  template <typename C>
  void apply_as(C* values, std::int64_t count) const;

  Kind kind_ = Kind::Identity;
  float alpha_ = 0.0F;
  float beta_ = 0.0F;
};

}  // namespace sardonyx
