#include "kernels/elementwise.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "unit/kernels/isas.h"

using namespace sardonyx;
using namespace sardonyx::kernels;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Numbers at which approximations break, often enough to fill vectors and a tail.
std::vector<float> extremes() {
  std::vector<float> x;
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const float v : {0.0F, 1e-45F, 1e-38F, 1e-20F, 40.0F, 87.0F, 88.0F, 88.35F, 88.5F, 88.73F,
                          89.0F, 104.0F, 176.5F, 1e4F, 1e13F, 1.9e19F, 1e30F, 3.4e38F, kInfinity}) {
      x.push_back(v), x.push_back(-v);
    }
    x.push_back(std::numeric_limits<float>::quiet_NaN());
  }
  return x;
}

/// Equal up to a relative error, infinities and NaNs included.
void check_close(float y, float expected, double relative) {
  CAPTURE(y);
  CAPTURE(expected);
  if (std::isnan(expected)) {
    CHECK(std::isnan(y));
  } else if (std::isinf(expected)) {
    CHECK(y == expected);
  } else {
    CHECK(std::abs(double{y} - double{expected}) <= relative * std::abs(expected) + 1e-30);
  }
}

}  // namespace

TEST_CASE("activations at infinities, huge numbers and NaN are what their formulas give") {
  const std::vector<float> x = extremes();
  for (const Isa isa : supported_isas()) {
    CAPTURE(isa_name(isa));
    for (int kind = 0; kind <= static_cast<int>(ActivationKind::GeluTanh); ++kind) {
      CAPTURE(kind);
      const Activation activation{static_cast<ActivationKind>(kind), 0.1F, 0.7F};
      std::vector<float> y(x.size());
      elementwise_table(isa).activate(activation, x.data(), y.data(),
                                      static_cast<std::int64_t>(x.size()));
      for (std::size_t i = 0; i < x.size(); ++i) {
        CAPTURE(x[i]);
        check_close(y[i], apply(activation, x[i]), 1e-5);
      }
    }
  }
  CHECK(apply({ActivationKind::Gelu}, kInfinity) == kInfinity);
  CHECK(apply({ActivationKind::Silu}, kInfinity) == kInfinity);
  CHECK(apply({ActivationKind::Silu}, -3e38F) == 0);
}

TEST_CASE("functions at infinities, huge numbers and NaN are those of the C library") {
  struct Row {
    UnaryKind kind;
    float (*expected)(float);
  };
  const Row rows[] = {
      {UnaryKind::Exp, [](float v) { return std::exp(v); }},
      {UnaryKind::Erf, [](float v) { return std::erf(v); }},
      {UnaryKind::Log, [](float v) { return std::log(v); }},
      {UnaryKind::Sqrt, [](float v) { return std::sqrt(v); }},
      {UnaryKind::Abs, [](float v) { return std::abs(v); }},
      {UnaryKind::Reciprocal, [](float v) { return 1 / v; }},
      {UnaryKind::Softplus,
       [](float v) { return std::isinf(v) && v > 0 ? v
                            : v > 50               ? v
                                                   : std::log1p(std::exp(v)); }},
  };
  const std::vector<float> x = extremes();
  for (const Isa isa : supported_isas()) {
    CAPTURE(isa_name(isa));
    for (const Row& row : rows) {
      CAPTURE(static_cast<int>(row.kind));
      std::vector<float> y(x.size());
      elementwise_table(isa).unary(row.kind, x.data(), y.data(),
                                   static_cast<std::int64_t>(x.size()));
      for (std::size_t i = 0; i < x.size(); ++i) {
        CAPTURE(x[i]);
        check_close(y[i], row.expected(x[i]), 3e-6);
      }
    }
  }
}

TEST_CASE("softmax takes masked elements for nothing") {
  for (const Isa isa : supported_isas()) {
    CAPTURE(isa_name(isa));
    std::vector<float> x(37, -kInfinity);
    x[3] = 1, x[36] = 1;
    std::vector<float> y(x.size());
    elementwise_table(isa).softmax(x.data(), y.data(), 1, 37);
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == (x[i] == 1 ? 0.5F : 0.0F));
  }
}
