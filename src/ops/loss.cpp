#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ir/element.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace sardonyx {

namespace {

bool fits(Dim a, Dim b) { return !is_known(a) || !is_known(b) || a == b; }

/// Scores are [batch, classes, ...], targets the same without the classes, weights one per class.
Status check_shapes(const InferContext& context) {
  const Shape* scores = context.shape(0);
  const Shape* targets = context.shape(1);
  const Shape* weights = context.shape(2);
  if (scores == nullptr) return {};
  if (scores->rank() < 2) {
    return context.error("'{}' should have two axes or more, but has shape {}",
                         context.input_name(0), scores->to_string());
  }
  if (targets != nullptr) {
    bool are_equal = targets->rank() == scores->rank() - 1;
    for (int i = 0; are_equal && i < targets->rank(); ++i) {
      are_equal = fits((*targets)[i], (*scores)[i == 0 ? 0 : i + 1]);
    }
    if (!are_equal) {
      return context.error("targets of shape {} do not fit scores of shape {}",
                           targets->to_string(), scores->to_string());
    }
  }
  if (weights != nullptr && (weights->rank() != 1 || !fits((*weights)[0], (*scores)[1]))) {
    return context.error("weights of shape {} do not fit scores of shape {}",
                         weights->to_string(), scores->to_string());
  }
  return {};
}

Status infer_loss(InferContext& context) {
  SDX_TRY(check_shapes(context));
  const std::string reduction = context.attributes().get_string("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none") {
    return context.error("reduction should be 'none', 'mean' or 'sum', but is '{}'", reduction);
  }
  const Shape* scores = context.shape(0);
  if (scores != nullptr) context.set_shape(1, *scores);
  if (reduction != "none") {
    context.set_shape(0, Shape{});
  } else if (scores != nullptr) {
    Shape shape = *scores;
    shape.erase(1);
    context.set_shape(0, shape);
  }
  return {};
}

/// Negated log-likelihoods of the targets, weighted, from [batch, classes, inner].
Status gather_losses(EvalContext& context, const Tensor& log_probabilities,
                     std::vector<double>& losses, double& total_weight) {
  const Tensor& targets = context.tensor(1);
  const Tensor* weights = context.tensor_or_null(2);
  const auto* ignored = context.attributes().get_if<std::int64_t>("ignore_index");
  const Shape& shape = log_probabilities.shape();
  const std::int64_t classes = shape[1];
  const std::int64_t inner = shape.product(2, shape.rank());
  const auto values = log_probabilities.values<double>();
  for (std::int64_t i = 0; i < targets.element_count(); ++i) {
    const std::int64_t target = read_int(targets.dtype(), targets.data(), i);
    if (ignored != nullptr && target == *ignored) {
      losses.push_back(0);
      continue;
    }
    if (target < 0 || target >= classes) {
      return context.error("target {} is outside of {} classes", target, classes);
    }
    const double weight =
        weights == nullptr ? 1 : read_real(weights->dtype(), weights->data(), target);
    const std::int64_t at = (i / inner * classes + target) * inner + i % inner;
    losses.push_back(-values[static_cast<std::size_t>(at)] * weight);
    total_weight += weight;
  }
  return {};
}

Status write_loss(EvalContext& context, const Tensor& log_probabilities) {
  std::vector<double> losses;
  double total_weight = 0;
  SDX_TRY(gather_losses(context, log_probabilities, losses, total_weight));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const std::string reduction = context.attributes().get_string("reduction", "mean");
  if (reduction == "none") {
    store_reals(y->dtype(), y->mutable_data(), 0, static_cast<std::int64_t>(losses.size()),
                losses.data());
    return {};
  }
  double total = 0;
  for (const double loss : losses) total += loss;
  write_real(y->dtype(), y->mutable_data(), 0, reduction == "sum" ? total : total / total_weight);
  return {};
}

Status evaluate_likelihood(EvalContext& context) {
  SDX_ASSIGN(const Tensor scores, to_dtype(context.tensor(0), DType::Float64));
  return write_loss(context, scores);
}

/// Scores become logarithms of probabilities over the classes.
void log_softmax(Tensor& scores) {
  const Shape& shape = scores.shape();
  const std::int64_t classes = shape[1];
  const std::int64_t inner = shape.product(2, shape.rank());
  double* block = scores.mutable_values<double>().data();
  for (std::int64_t n = 0; n < shape[0]; ++n, block += classes * inner) {
    for (std::int64_t i = 0; i < inner; ++i) {
      double largest = -std::numeric_limits<double>::infinity();
      for (std::int64_t c = 0; c < classes; ++c) largest = std::max(largest, block[c * inner + i]);
      double sum = 0;
      for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(block[c * inner + i] - largest);
      const double shift = largest + std::log(sum);
      for (std::int64_t c = 0; c < classes; ++c) block[c * inner + i] -= shift;
    }
  }
}

Status evaluate_cross_entropy(EvalContext& context) {
  const Tensor& source = context.tensor(0);
  SDX_ASSIGN(Tensor scores, Tensor::allocate(DType::Float64, source.shape()));
  convert_elements(source.dtype(), source.data(), DType::Float64, scores.mutable_data(),
                   source.element_count());
  log_softmax(scores);
  SDX_ASSIGN(Tensor * probabilities, context.allocate(1));
  if (probabilities != nullptr) {
    convert_elements(DType::Float64, scores.data(), probabilities->dtype(),
                     probabilities->mutable_data(), scores.element_count());
  }
  return write_loss(context, scores);
}

constexpr OpSchema kRows[] = {
    {"", "NegativeLogLikelihoodLoss", 12, {"TNt>T", kFloats}, "ignore_index:i reduction:s",
     infer_loss, evaluate_likelihood},
    {"", "NegativeLogLikelihoodLoss", 13, {"TNt>T", kFloats}, "ignore_index:i reduction:s",
     infer_loss, evaluate_likelihood},
    {"", "NegativeLogLikelihoodLoss", 22, {"TNt>T", kFloatsBf16}, "ignore_index:i reduction:s",
     infer_loss, evaluate_likelihood},
    {"", "SoftmaxCrossEntropyLoss", 12, {"TNt>Tt", kFloats}, "ignore_index:i reduction:s",
     infer_loss, evaluate_cross_entropy},
    {"", "SoftmaxCrossEntropyLoss", 13, {"TNt>Tt", kFloatsBf16}, "ignore_index:i reduction:s",
     infer_loss, evaluate_cross_entropy},
};

}  // namespace

std::span<const OpSchema> loss_schemas() { return kRows; }

}  // namespace sardonyx
