#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sardonyx {

/// What the classifiers and regressors of ai.onnx.ml do with their scores at the end.
enum class PostTransform { None, Softmax, Logistic, SoftmaxZero, Probit };

/// Errors   InvalidModel for a name that the standard does not have.
Result<PostTransform> post_transform(std::string_view name);

/// 1 / (1 + exp(-x)), without overflow.
double logistic(double x);

/// Changes the scores of one row in place. SoftmaxZero leaves zeros as they are.
void transform_scores(PostTransform transform, std::span<double> scores);

/// How the score of the only class turns into scores of two.
enum class SecondClass {
  /// The score is a probability: [1 - s, s].
  Complement,
  /// The score is a distance: [-s, s].
  Opposite,
};

/// Scores of both classes from the one score. Logistic is taken of -s and s; for Probit the second
/// score is 0.
std::vector<double> two_scores(PostTransform transform, double score, SecondClass how);

}  // namespace sardonyx
