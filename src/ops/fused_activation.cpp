#include "ops/fused_activation.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/text.h"

namespace sardonyx {

struct Activation::Row {
  std::string_view name;
  Kind kind;
  int alpha_count;
  int beta_count;
  float alpha;
  float beta;

  static const Row* find(std::string_view name);
};

const Activation::Row* Activation::Row::find(std::string_view name) {
  static constexpr Row kRows[] = {
      {"identity", Kind::Identity, 0, 0, 0, 0},
      {"relu", Kind::Relu, 0, 0, 0, 0},
      {"tanh", Kind::Tanh, 0, 0, 0, 0},
      {"sigmoid", Kind::Sigmoid, 0, 0, 0, 0},
      {"affine", Kind::Affine, 1, 1, 1.0F, 0},
      {"leakyrelu", Kind::LeakyRelu, 1, 0, 0.01F, 0},
      {"thresholdedrelu", Kind::ThresholdedRelu, 1, 0, 1.0F, 0},
      {"scaledtanh", Kind::ScaledTanh, 1, 1, 1.0F, 1.0F},
      {"hardsigmoid", Kind::HardSigmoid, 1, 1, 0.2F, 0.5F},
      {"elu", Kind::Elu, 1, 0, 1.0F, 0},
      {"softsign", Kind::Softsign, 0, 0, 0, 0},
      {"softplus", Kind::Softplus, 0, 0, 0, 0},
      {"clip", Kind::Clip, 1, 1, -3.402823466e38F, 3.402823466e38F},
      {"gelu", Kind::Gelu, 0, 0, 0, 0},
      {"fastgelu", Kind::FastGelu, 0, 0, 0, 0},
      {"hardswish", Kind::HardSwish, 0, 0, 0, 0},
      {"silu", Kind::Silu, 0, 0, 0, 0},
  };
  const auto same = [&](const Row& row) {
    return std::equal(
        name.begin(), name.end(), row.name.begin(), row.name.end(),
        [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
  };
  const auto* found = std::find_if(std::begin(kRows), std::end(kRows), same);
  return found == std::end(kRows) ? nullptr : found;
}

Result<Activation> Activation::of(std::string_view name, const float* alpha, const float* beta) {
  const Row* row = Row::find(name);
  if (row == nullptr) return failure(Code::Unsupported, "activation '{}' is not known", name);
  Activation activation;
  activation.kind_ = row->kind;
  activation.alpha_ = alpha != nullptr ? *alpha : row->alpha;
  activation.beta_ = beta != nullptr ? *beta : row->beta;
  return activation;
}

Result<Activation> Activation::of_node(const Attributes& attributes) {
  const std::string name = attributes.get_string("activation", "");
  if (name.empty()) return Activation();
  const auto& params = attributes.get_floats("activation_params");
  const float* alpha = attributes.get_if<float>("activation_alpha");
  const float* beta = attributes.get_if<float>("activation_beta");
  if (!params.empty()) alpha = params.data();
  if (params.size() > 1) beta = &params[1];
  return of(name, alpha, beta);
}

int Activation::alpha_count() const {
  return kind_ == Kind::Affine || kind_ == Kind::LeakyRelu || kind_ == Kind::ThresholdedRelu ||
         kind_ == Kind::ScaledTanh || kind_ == Kind::HardSigmoid || kind_ == Kind::Elu;
}

int Activation::beta_count() const {
  return kind_ == Kind::Affine || kind_ == Kind::ScaledTanh || kind_ == Kind::HardSigmoid;
}

template <typename C>
void Activation::apply_as(C* values, std::int64_t count) const {
  const C alpha = alpha_;
  const C beta = beta_;
  const auto each = [&](auto f) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = f(values[i]);
  };
  const auto sigmoid = [](C x) { return C{1} / (C{1} + std::exp(-x)); };
  switch (kind_) {
    case Kind::Identity: return;
    // Written so that a NaN stays one.
    case Kind::Relu: return each([](C x) { return x < C{0} ? C{0} : x; });
    case Kind::Tanh: return each([](C x) { return std::tanh(x); });
    case Kind::Sigmoid: return each(sigmoid);
    case Kind::Affine: return each([=](C x) { return alpha * x + beta; });
    case Kind::LeakyRelu: return each([=](C x) { return x < C{0} ? alpha * x : x; });
    case Kind::ThresholdedRelu: return each([=](C x) { return x > alpha ? x : C{0}; });
    case Kind::ScaledTanh: return each([=](C x) { return alpha * std::tanh(beta * x); });
    case Kind::HardSigmoid:
      return each([=](C x) { return std::min(C{1}, std::max(C{0}, alpha * x + beta)); });
    case Kind::Elu: return each([=](C x) { return x < C{0} ? alpha * std::expm1(x) : x; });
    case Kind::Softsign: return each([](C x) { return x / (C{1} + std::abs(x)); });
    case Kind::Softplus:
      return each([](C x) { return std::max(x, C{0}) + std::log1p(std::exp(-std::abs(x))); });
    case Kind::Clip: return each([=](C x) { return x < alpha ? alpha : x > beta ? beta : x; });
    case Kind::Gelu:
      return each([](C x) { return C(0.5) * x * std::erfc(-x * C(0.70710678118654752440)); });
    case Kind::FastGelu:
      return each([](C x) {
        const C inner = C(0.79788456080286535588) * (x + C(0.044715) * x * x * x);
        return C(0.5) * x * (C{1} + std::tanh(inner));
      });
    case Kind::HardSwish:
      return each([](C x) { return x * std::min(C{1}, std::max(C{0}, x / C{6} + C(0.5))); });
    case Kind::Silu: return each([=](C x) { return x * sigmoid(x); });
  }
}

void Activation::apply(float* values, std::int64_t count) const { apply_as(values, count); }
void Activation::apply(double* values, std::int64_t count) const { apply_as(values, count); }

}  // namespace sardonyx
