#include <algorithm>
#include <cmath>

#include "ir/element.h"
#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/ml_score.h"

namespace sardonyx {

namespace {

using Row = std::span<const double>;

/// How alike two rows are.
struct Kernel {
  enum class Kind { Linear, Poly, Rbf, Sigmoid };
  Kind kind = Kind::Linear;
  double gamma = 0.0;
  double coef0 = 0.0;
  double degree = 0.0;

  double operator()(Row a, std::span<const float> b) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto other = static_cast<double>(b[i]);
      sum += kind == Kind::Rbf ? (a[i] - other) * (a[i] - other) : a[i] * other;
    }
    switch (kind) {
      case Kind::Linear: return sum;
      case Kind::Poly: return std::pow(gamma * sum + coef0, degree);
      case Kind::Rbf: return std::exp(-gamma * sum);
      case Kind::Sigmoid: return std::tanh(gamma * sum + coef0);
    }
    return sum;
  }
};

Result<Kernel> kernel_of(const Attributes& attributes) {
  Kernel kernel;
  const std::string name = attributes.get_string("kernel_type", "LINEAR");
  if (name == "POLY") {
    kernel.kind = Kernel::Kind::Poly;
  } else if (name == "RBF") {
    kernel.kind = Kernel::Kind::Rbf;
  } else if (name == "SIGMOID") {
    kernel.kind = Kernel::Kind::Sigmoid;
  } else if (name != "LINEAR") {
    return failure(Code::InvalidModel, "kernel_type '{}' is none of LINEAR, POLY, RBF, SIGMOID",
                   name);
  }
  const auto& parameters = attributes.get_floats("kernel_params");
  if (parameters.empty()) return kernel;
  if (parameters.size() != 3) {
    return failure(Code::InvalidModel, "kernel_params has {} elements, expected 3",
                   parameters.size());
  }
  kernel.gamma = static_cast<double>(parameters[0]);
  kernel.coef0 = static_cast<double>(parameters[1]);
  kernel.degree = static_cast<double>(parameters[2]);
  return kernel;
}

Dim row_count(const Shape* input) {
  if (input == nullptr) return kUnknownDim;
  return input->rank() < 2 ? 1 : (*input)[0];
}

std::size_t row_count(const Tensor& x) {
  return x.rank() < 2 ? 1 : static_cast<std::size_t>(x.dim(0));
}

Status infer_regressor(InferContext& context) {
  context.set_shape(0, {row_count(context.shape(0)), 1});
  return {};
}

Status evaluate_regressor(EvalContext& context) {
  const Attributes& attributes = context.attributes();
  SDX_ASSIGN(const Kernel kernel, kernel_of(attributes));
  SDX_ASSIGN(const PostTransform transform,
             post_transform(attributes.get_string("post_transform", "NONE")));
  const auto& coefficients = attributes.get_floats("coefficients");
  const auto& vectors = attributes.get_floats("support_vectors");
  const auto& rho = attributes.get_floats("rho");
  const std::int64_t supports = std::max<std::int64_t>(0, attributes.get_int("n_supports", 0));
  SDX_ASSIGN(const Tensor x, to_dtype(context.tensor(0), DType::Float64));
  const std::size_t rows = row_count(x);
  const std::size_t width = rows == 0 ? 0 : x.values<double>().size() / rows;
  const auto count = static_cast<std::size_t>(supports);
  const bool has_supports = count > 0;
  // Without support vectors the coefficients are a plane's.
  const std::size_t expected = has_supports ? count : width;
  if (rows > 0 && (coefficients.size() != expected || rho.empty() ||
                   (has_supports && (count > vectors.size() || vectors.size() != count * width)))) {
    return context.error("{} coefficients, {} support values and {} rho do not fit rows of {}",
                         coefficients.size(), vectors.size(), rho.size(), width);
  }
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  for (std::size_t i = 0; i < rows; ++i) {
    const Row row = x.values<double>().subspan(i * width, width);
    double sum = static_cast<double>(rho[0]);
    for (std::size_t k = 0; has_supports && k < count; ++k) {
      sum += static_cast<double>(coefficients[k]) *
             kernel(row, std::span(vectors).subspan(k * width, width));
    }
    if (!has_supports) sum += kernel(row, coefficients);
    if (attributes.get_int("one_class", 0) != 0) {
      sum = sum > 0.0 ? 1.0 : -1.0;
    } else {
      transform_scores(transform, {&sum, 1});
    }
    y->mutable_values<float>()[i] = static_cast<float>(sum);
  }
  return {};
}

/// A support vector classifier as its attributes describe it; all sizes checked.
struct Classifier {
  Kernel kernel;
  PostTransform transform = PostTransform::None;
  std::size_t classes = 0;
  std::size_t vectors = 0;
  std::size_t width = 0;
  /// First vector of each class, and one past the last.
  std::vector<std::size_t> first;
  const std::vector<float>& coefficients;
  const std::vector<float>& support;
  const std::vector<float>& rho;
  const std::vector<float>& prob_a;
  const std::vector<float>& prob_b;

  bool is_linear() const { return vectors == 0; }
  std::size_t pairs() const { return classes * (classes - 1) / 2; }
};

Status check_sizes(const EvalContext& context, const Classifier& c) {
  const bool has_probabilities = !c.prob_a.empty();
  const bool fits =
      c.is_linear()
          ? c.coefficients.size() == c.classes * c.width && !c.rho.empty()
          : c.support.size() == c.vectors * c.width &&
                c.coefficients.size() == (c.classes - 1) * c.vectors && c.rho.size() >= c.pairs();
  if (fits && (!has_probabilities ||
               (c.prob_a.size() >= c.pairs() && c.prob_b.size() >= c.pairs()))) {
    return {};
  }
  return context.error(
      "{} coefficients, {} support values, {} rho and {} prob_a do not fit {} classes, {} vectors "
      "and rows of {}",
      c.coefficients.size(), c.support.size(), c.rho.size(), c.prob_a.size(), c.classes, c.vectors,
      c.width);
}

Result<Classifier> classifier_of(const EvalContext& context, std::size_t width) {
  const Attributes& attributes = context.attributes();
  Classifier c{{}, PostTransform::None, 0, 0, width, {0},
               attributes.get_floats("coefficients"), attributes.get_floats("support_vectors"),
               attributes.get_floats("rho"), attributes.get_floats("prob_a"),
               attributes.get_floats("prob_b")};
  SDX_ASSIGN(c.kernel, kernel_of(attributes));
  SDX_ASSIGN(c.transform, post_transform(attributes.get_string("post_transform", "NONE")));
  for (const std::int64_t count : attributes.get_ints("vectors_per_class")) {
    if (count < 0 || count > std::int64_t{1} << 40) {
      return context.error("vectors_per_class holds {}", count);
    }
    c.vectors += static_cast<std::size_t>(count);
    c.first.push_back(c.vectors);
  }
  const std::size_t labels = attributes.get_strings("classlabels_strings").empty()
                                 ? attributes.get_ints("classlabels_ints").size()
                                 : attributes.get_strings("classlabels_strings").size();
  c.classes = c.is_linear() ? labels : c.first.size() - 1;
  if (c.classes == 0 || c.classes > 65536 || labels < c.classes) {
    return context.error("{} labels do not fit {} classes", labels, c.classes);
  }
  SDX_TRY(check_sizes(context, c));
  return c;
}

/// Decision values of every pair of classes, and the votes they give.
void decide_pairs(const Classifier& c, Row row, std::vector<double>& decisions,
                  std::vector<int>& votes) {
  std::vector<double> kernels(c.vectors);
  for (std::size_t k = 0; k < c.vectors; ++k) {
    kernels[k] = c.kernel(row, std::span(c.support).subspan(k * c.width, c.width));
  }
  decisions.clear();
  votes.assign(c.classes, 0);
  for (std::size_t i = 0; i < c.classes; ++i) {
    for (std::size_t j = i + 1; j < c.classes; ++j) {
      double sum = static_cast<double>(c.rho[decisions.size()]);
      for (std::size_t k = c.first[i]; k < c.first[i + 1]; ++k) {
        sum += static_cast<double>(c.coefficients[(j - 1) * c.vectors + k]) * kernels[k];
      }
      for (std::size_t k = c.first[j]; k < c.first[j + 1]; ++k) {
        sum += static_cast<double>(c.coefficients[i * c.vectors + k]) * kernels[k];
      }
      decisions.push_back(sum);
      ++votes[sum > 0.0 ? i : j];
    }
  }
}

/// Class probabilities from probabilities of pairs `p` [classes, classes] (Wu, Lin and Weng 2004,
/// second method).
std::vector<double> couple(const std::vector<double>& p, std::size_t n) {
  std::vector<double> q(n * n, 0.0);
  for (std::size_t t = 0; t < n; ++t) {
    for (std::size_t j = 0; j < n; ++j) {
      if (j == t) continue;
      q[t * n + t] += p[j * n + t] * p[j * n + t];
      q[t * n + j] = -p[j * n + t] * p[t * n + j];
    }
  }
  std::vector<double> result(n, 1.0 / static_cast<double>(n));
  std::vector<double> qp(n);
  const double epsilon = 0.005 / static_cast<double>(n);
  for (int turn = 0; turn < 100; ++turn) {
    double pqp = 0.0;
    for (std::size_t t = 0; t < n; ++t) {
      qp[t] = 0.0;
      for (std::size_t j = 0; j < n; ++j) qp[t] += q[t * n + j] * result[j];
      pqp += result[t] * qp[t];
    }
    double worst = 0.0;
    for (std::size_t t = 0; t < n; ++t) worst = std::max(worst, std::fabs(qp[t] - pqp));
    if (worst < epsilon) break;
    for (std::size_t t = 0; t < n; ++t) {
      const double step = (pqp - qp[t]) / q[t * n + t];
      result[t] += step;
      pqp = (pqp + step * (step * q[t * n + t] + 2.0 * qp[t])) / (1.0 + step) / (1.0 + step);
      for (std::size_t j = 0; j < n; ++j) {
        qp[j] = (qp[j] + step * q[t * n + j]) / (1.0 + step);
        result[j] /= 1.0 + step;
      }
    }
  }
  return result;
}

std::vector<double> probabilities(const Classifier& c, const std::vector<double>& decisions) {
  std::vector<double> pairs(c.classes * c.classes, 0.0);
  std::size_t pair = 0;
  for (std::size_t i = 0; i < c.classes; ++i) {
    for (std::size_t j = i + 1; j < c.classes; ++j, ++pair) {
      const double value = logistic(-(decisions[pair] * static_cast<double>(c.prob_a[pair]) +
                                      static_cast<double>(c.prob_b[pair])));
      const double clamped = std::clamp(value, 1e-7, 1.0 - 1e-7);
      pairs[i * c.classes + j] = clamped;
      pairs[j * c.classes + i] = 1.0 - clamped;
    }
  }
  return couple(pairs, c.classes);
}

/// The label's position and the row's scores.
std::size_t classify(const Classifier& c, Row row, std::vector<double>& scores) {
  const auto best = [](const auto& values) {
    return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) -
                                    values.begin());
  };
  if (c.is_linear()) {
    scores.clear();
    for (std::size_t i = 0; i < c.classes; ++i) {
      scores.push_back(static_cast<double>(c.rho[0]) +
                       c.kernel(row, std::span(c.coefficients).subspan(i * c.width, c.width)));
    }
    const std::size_t label = best(scores);
    transform_scores(c.transform, scores);
    return label;
  }
  std::vector<int> votes;
  decide_pairs(c, row, scores, votes);
  const std::size_t label = best(votes);
  if (!c.prob_a.empty()) {
    scores = probabilities(c, scores);
    transform_scores(c.transform, scores);
  } else if (scores.size() == 1) {
    scores = two_scores(c.transform, scores[0],
                        c.transform == PostTransform::None ? SecondClass::Opposite
                                                           : SecondClass::Complement);
  } else {
    transform_scores(c.transform, scores);
  }
  return label;
}

Status infer_classifier(InferContext& context) {
  const Attributes& attributes = context.attributes();
  const bool has_strings = !attributes.get_strings("classlabels_strings").empty();
  if (!has_strings && attributes.get_ints("classlabels_ints").empty()) {
    return context.error("the class labels are missing");
  }
  context.set_dtype(0, has_strings ? DType::String : DType::Int64);
  const Dim rows = row_count(context.shape(0));
  context.set_shape(0, {rows});
  context.set_shape(1, {rows, kUnknownDim});
  return {};
}

Status evaluate_classifier(EvalContext& context) {
  const Attributes& attributes = context.attributes();
  SDX_ASSIGN(const Tensor x, to_dtype(context.tensor(0), DType::Float64));
  const std::size_t rows = row_count(x);
  const std::size_t width = rows == 0 ? 0 : x.values<double>().size() / rows;
  SDX_ASSIGN(const Classifier c, classifier_of(context, width));
  const auto& strings = attributes.get_strings("classlabels_strings");
  SDX_ASSIGN(Tensor * labels, context.allocate(0));
  std::vector<double> all;
  std::vector<double> scores;
  for (std::size_t i = 0; i < rows; ++i) {
    const std::size_t label = classify(c, x.values<double>().subspan(i * width, width), scores);
    all.insert(all.end(), scores.begin(), scores.end());
    if (labels == nullptr) continue;
    if (strings.empty()) {
      labels->mutable_values<std::int64_t>()[i] = attributes.get_ints("classlabels_ints")[label];
    } else {
      labels->mutable_values<std::string>()[i] = strings[label];
    }
  }
  const std::size_t columns = rows == 0 ? c.classes : all.size() / rows;
  SDX_ASSIGN(Tensor * z, context.allocate(1, Shape{static_cast<Dim>(rows),
                                                   static_cast<Dim>(columns)}));
  if (z == nullptr) return {};
  std::transform(all.begin(), all.end(), z->mutable_values<float>().begin(),
                 [](double score) { return static_cast<float>(score); });
  return {};
}

constexpr DTypeSet kNumbers =
    set_of(DType::Float32, DType::Float64, DType::Int32, DType::Int64);

constexpr OpSchema kRows[] = {
    {"ai.onnx.ml", "SVMClassifier", 1, {"T>XF", kNumbers},
     "classlabels_ints:is classlabels_strings:ss coefficients:fs kernel_params:fs kernel_type:s "
     "post_transform:s prob_a:fs prob_b:fs rho:fs support_vectors:fs vectors_per_class:is",
     infer_classifier, evaluate_classifier},
    {"ai.onnx.ml", "SVMRegressor", 1, {"T>F", kNumbers},
     "coefficients:fs kernel_params:fs kernel_type:s n_supports:i one_class:i post_transform:s "
     "rho:fs support_vectors:fs",
     infer_regressor, evaluate_regressor},
};

}  // namespace

std::span<const OpSchema> ml_svm_schemas() { return kRows; }

}  // namespace sardonyx
