#include "ops/ml_score.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace sardonyx {

namespace {

/// Inverse of the error function (Giles' approximation, then two steps of Newton's method).
double inverse_erf(double x) {
  if (std::fabs(x) >= 1.0) return std::copysign(HUGE_VAL, x);
  constexpr double kA = 0.147;
  constexpr double kPi = 3.14159265358979323846;
  const double log_term = std::log1p(-x * x);
  const double half = 2.0 / (kPi * kA) + log_term / 2.0;
  double y = std::copysign(std::sqrt(std::sqrt(half * half - log_term / kA) - half), x);
  for (int i = 0; i < 2; ++i) {
    y -= (std::erf(y) - x) / (2.0 / std::sqrt(kPi) * std::exp(-y * y));
  }
  return y;
}

double probit(double x) { return std::sqrt(2.0) * inverse_erf(2.0 * x - 1.0); }

void softmax(std::span<double> scores, bool keeps_zeros) {
  constexpr double kZero = 1e-7;
  double most = -HUGE_VAL;
  for (const double score : scores) most = std::max(most, score);
  double total = 0.0;
  for (double& score : scores) {
    if (keeps_zeros && std::fabs(score) <= kZero) {
      score = 0.0;
      continue;
    }
    score = std::exp(score - most);
    total += score;
  }
  if (total == 0.0) return;
  for (double& score : scores) score /= total;
}

}  // namespace

Result<PostTransform> post_transform(std::string_view name) {
  if (name == "NONE") return PostTransform::None;
  if (name == "SOFTMAX") return PostTransform::Softmax;
  if (name == "LOGISTIC") return PostTransform::Logistic;
  if (name == "SOFTMAX_ZERO") return PostTransform::SoftmaxZero;
  if (name == "PROBIT") return PostTransform::Probit;
  return failure(Code::InvalidModel,
                 "post_transform '{}' is none of NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT",
                 name);
}

double logistic(double x) {
  const double positive = 1.0 / (1.0 + std::exp(-std::fabs(x)));
  return x < 0.0 ? 1.0 - positive : positive;
}

void transform_scores(PostTransform transform, std::span<double> scores) {
  switch (transform) {
    case PostTransform::None: return;
    case PostTransform::Softmax: softmax(scores, false); return;
    case PostTransform::SoftmaxZero: softmax(scores, true); return;
    case PostTransform::Logistic:
      for (double& score : scores) score = logistic(score);
      return;
    case PostTransform::Probit:
      for (double& score : scores) score = probit(score);
      return;
  }
}

std::vector<double> two_scores(PostTransform transform, double score, SecondClass how) {
  if (transform == PostTransform::Probit) return {probit(score), 0.0};
  if (transform == PostTransform::Logistic) return {logistic(-score), logistic(score)};
  if (how == SecondClass::Complement) return {1.0 - score, score};
  return {-score, score};
}

}  // namespace sardonyx
