#include <algorithm>
#include <array>
#include <cmath>

#include "ir/element.h"
#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/ml_score.h"
#include "ops/prepared.h"
#include "ops/tree_ensemble.h"

namespace sardonyx {

namespace {

/// Rows and features of an input [N, F] or [F].
struct Table {
  std::int64_t rows = 0;
  std::int64_t features = 0;
};

Table table_of(const Tensor& x) {
  if (x.rank() < 2) return {1, x.element_count()};
  return {x.dim(0), x.dim(0) == 0 ? 0 : x.element_count() / x.dim(0)};
}

/// The class labels, which the first output takes its type from.
struct Labels {
  const std::vector<std::string>& strings;
  const std::vector<std::int64_t>& ints;

  bool are_strings() const { return !strings.empty(); }
  std::size_t size() const { return are_strings() ? strings.size() : ints.size(); }
};

Labels labels_of(const Attributes& attributes) {
  const char* ints =
      attributes.has("classlabels_int64s") ? "classlabels_int64s" : "classlabels_ints";
  return {attributes.get_strings("classlabels_strings"), attributes.get_ints(ints)};
}

Dim row_count(const Shape* input) {
  if (input == nullptr) return kUnknownDim;
  return input->rank() < 2 ? 1 : (*input)[0];
}

/// [N] labels and [N, scores] scores.
Status infer_classifier(InferContext& context) {
  const Labels labels = labels_of(context.attributes());
  if (labels.size() == 0) return context.error("the class labels are missing");
  SDX_TRY(post_transform(context.attributes().get_string("post_transform", "NONE")).take_status());
  context.set_dtype(0, labels.are_strings() ? DType::String : DType::Int64);
  const Dim rows = row_count(context.shape(0));
  context.set_shape(0, {rows});
  context.set_shape(1, {rows, kUnknownDim});
  return {};
}

/// Scores of all rows, one after the other, and the label of each.
class Predictions {
 public:
  Predictions(EvalContext& context, std::int64_t rows)
      : context_(context), rows_(rows), labels_(labels_of(context.attributes())) {}

  /// A class beyond the labels gets the first label.
  void add(std::size_t label, std::span<const double> scores) {
    chosen_.push_back(label < labels_.size() ? label : 0);
    scores_.insert(scores_.end(), scores.begin(), scores.end());
  }

  Status write(std::size_t width) {
    const DType dtype = labels_.are_strings() ? DType::String : DType::Int64;
    SDX_ASSIGN(Tensor * y, context_.allocate(0, dtype, Shape{rows_}));
    for (std::size_t i = 0; y != nullptr && i < chosen_.size(); ++i) {
      if (labels_.are_strings()) {
        y->mutable_values<std::string>()[i] = labels_.strings[chosen_[i]];
      } else {
        y->mutable_values<std::int64_t>()[i] = labels_.ints[chosen_[i]];
      }
    }
    SDX_ASSIGN(Tensor * z, context_.allocate(1, Shape{rows_, static_cast<Dim>(width)}));
    if (z == nullptr) return {};
    std::transform(scores_.begin(), scores_.end(), z->mutable_values<float>().begin(),
                   [](double score) { return static_cast<float>(score); });
    return {};
  }

 private:
  EvalContext& context_;
  std::int64_t rows_;
  Labels labels_;
  std::vector<std::size_t> chosen_;
  std::vector<double> scores_;
};

std::size_t largest(std::span<const double> scores) {
  return static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

/// The first `rows * features` elements as doubles.
Result<Tensor> as_doubles(const Tensor& x) { return to_dtype(x, DType::Float64); }

Result<std::vector<double>> base_values(const Attributes& attributes) {
  if (const auto* tensor = attributes.get_if<Tensor>("base_values_as_tensor")) {
    SDX_ASSIGN(const Tensor real, to_dtype(*tensor, DType::Float64));
    const auto values = real.values<double>();
    return std::vector<double>(values.begin(), values.end());
  }
  const auto& list = attributes.get_floats("base_values");
  return std::vector<double>(list.begin(), list.end());
}

Status check_features(const EvalContext& context, const TreeEnsemble& trees, const Table& table) {
  if (trees.last_feature() < table.features || table.rows == 0) return {};
  return context.error("the trees use feature {}, but rows have {}", trees.last_feature(),
                       table.features);
}

/// What a classifier of trees has to know to turn totals into scores.
struct TreeClassifier {
  std::size_t classes = 0;
  /// All weights belong to one of two classes.
  bool is_binary = false;
  bool is_positive = true;
  std::vector<double> base;
  PostTransform transform = PostTransform::None;
};

Result<TreeClassifier> tree_classifier(const Attributes& attributes) {
  TreeClassifier classifier;
  classifier.classes = labels_of(attributes).size();
  const auto& ids = attributes.get_ints("class_ids");
  const bool is_single =
      std::all_of(ids.begin(), ids.end(), [&](std::int64_t id) { return id == ids.front(); });
  classifier.is_binary = classifier.classes == 2 && is_single;
  const auto& weights = attributes.get_floats("class_weights");
  classifier.is_positive =
      std::none_of(weights.begin(), weights.end(), [](float weight) { return weight < 0.0F; });
  if (const auto* tensor = attributes.get_if<Tensor>("class_weights_as_tensor")) {
    for (std::int64_t i = 0; i < tensor->element_count(); ++i) {
      if (read_real(tensor->dtype(), tensor->data(), i) < 0.0) classifier.is_positive = false;
    }
  }
  SDX_ASSIGN(classifier.base, base_values(attributes));
  SDX_ASSIGN(classifier.transform, post_transform(attributes.get_string("post_transform", "NONE")));
  return classifier;
}

/// Two classes of which only one has weights: its score decides.
std::size_t decide_binary(const TreeClassifier& classifier, const TreeEnsemble::Totals& totals,
                          std::vector<double>& scores) {
  const std::size_t scored = totals.has_score[1] != 0 ? 1 : 0;
  double score = totals.scores[scored];
  const bool has_both = classifier.base.size() == 2;
  if (has_both) score += classifier.base[scored];
  if (classifier.base.size() == 1 && scored == 0) score += classifier.base[0];
  if (scored == 1 || has_both) {
    scores = {0.0, 0.0};
    scores[scored] = score;
    transform_scores(classifier.transform, scores);
  } else {
    scores = two_scores(classifier.transform, score,
                        classifier.is_positive ? SecondClass::Complement : SecondClass::Opposite);
  }
  return score > (classifier.is_positive ? 0.5 : 0.0) ? 1 : 0;
}

/// The class with the largest score, of those that any tree voted on.
std::size_t largest_voted(const TreeEnsemble::Totals& totals) {
  std::size_t best = totals.scores.size();
  for (std::size_t i = 0; i < totals.scores.size(); ++i) {
    if (totals.has_score[i] == 0) continue;
    if (best == totals.scores.size() || totals.scores[i] > totals.scores[best]) best = i;
  }
  return best;
}

std::size_t decide(const TreeClassifier& classifier, const TreeEnsemble::Totals& totals,
                   std::vector<double>& scores) {
  if (classifier.is_binary) return decide_binary(classifier, totals, scores);
  scores = totals.scores;
  if (classifier.base.size() == scores.size()) {
    for (std::size_t i = 0; i < scores.size(); ++i) scores[i] += classifier.base[i];
  }
  const std::size_t label = classifier.base.empty() ? largest_voted(totals) : largest(scores);
  transform_scores(classifier.transform, scores);
  return label;
}

class PreparedTreeClassifier final : public PreparedEvaluation {
 public:
  static Result<PreparedTreeClassifier> of(const Attributes& attributes) {
    PreparedTreeClassifier prepared;
    SDX_ASSIGN(prepared.classifier_, tree_classifier(attributes));
    SDX_ASSIGN(prepared.trees_,
               TreeEnsemble::from_ids(attributes, "class",
                                      static_cast<std::int64_t>(prepared.classifier_.classes)));
    return prepared;
  }

  Status evaluate(EvalContext& context) const override {
    const Table table = table_of(context.tensor(0));
    SDX_TRY(check_features(context, trees_, table));
    SDX_ASSIGN(const Tensor x, as_doubles(context.tensor(0)));
    Predictions predictions(context, table.rows);
    TreeEnsemble::Totals totals;
    std::vector<double> scores;
    const auto width = static_cast<std::size_t>(table.features);
    std::size_t outputs = classifier_.classes;
    for (std::size_t row = 0; row < static_cast<std::size_t>(table.rows); ++row) {
      trees_.evaluate(x.values<double>().subspan(row * width, width), totals);
      const std::size_t label = decide(classifier_, totals, scores);
      predictions.add(label, scores);
      outputs = scores.size();
    }
    return predictions.write(outputs);
  }

 private:
  TreeClassifier classifier_;
  TreeEnsemble trees_;
};

Status evaluate_tree_classifier(EvalContext& context) {
  SDX_ASSIGN(const auto prepared, PreparedTreeClassifier::of(context.attributes()));
  return prepared.evaluate(context);
}

Result<TreeEnsemble::Aggregate> aggregate_of(const std::string& name) {
  if (name == "SUM") return TreeEnsemble::Aggregate::Sum;
  if (name == "AVERAGE") return TreeEnsemble::Aggregate::Average;
  if (name == "MIN") return TreeEnsemble::Aggregate::Min;
  if (name == "MAX") return TreeEnsemble::Aggregate::Max;
  return failure(Code::InvalidModel, "aggregate_function '{}' is none of SUM, AVERAGE, MIN, MAX",
                 name);
}

Status infer_targets(InferContext& context, const char* name) {
  const std::int64_t targets = context.attributes().get_int(name, 1);
  if (targets < 1 || targets > (std::int64_t{1} << 31) - 1) {
    return context.error("{} is {}, but should be 1 or more", name, targets);
  }
  context.set_shape(0, {row_count(context.shape(0)), targets});
  return {};
}

Status infer_tree_regressor(InferContext& context) { return infer_targets(context, "n_targets"); }

/// Runs all rows; `base` is added to the totals.
Status run_regressor(EvalContext& context, const TreeEnsemble& trees, PostTransform transform,
                     std::span<const double> base) {
  const Table table = table_of(context.tensor(0));
  SDX_TRY(check_features(context, trees, table));
  SDX_ASSIGN(const Tensor x, as_doubles(context.tensor(0)));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  if (!base.empty() && base.size() != static_cast<std::size_t>(trees.outputs())) {
    return context.error("base_values has {} elements, expected {}", base.size(), trees.outputs());
  }
  TreeEnsemble::Totals totals;
  const auto width = static_cast<std::size_t>(table.features);
  std::int64_t to = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(table.rows); ++row) {
    trees.evaluate(x.values<double>().subspan(row * width, width), totals);
    for (std::size_t i = 0; i < base.size(); ++i) totals.scores[i] += base[i];
    transform_scores(transform, totals.scores);
    for (const double score : totals.scores) {
      write_real(y->dtype(), y->mutable_data(), to++, score);
    }
  }
  return {};
}

/// TreeEnsembleRegressor and TreeEnsemble.
class PreparedRegressor final : public PreparedEvaluation {
 public:
  static Result<PreparedRegressor> of_ids(const Attributes& attributes) {
    PreparedRegressor prepared;
    SDX_ASSIGN(prepared.trees_,
               TreeEnsemble::from_ids(attributes, "target", attributes.get_int("n_targets", 1)));
    SDX_ASSIGN(prepared.trees_.aggregate,
               aggregate_of(attributes.get_string("aggregate_function", "SUM")));
    SDX_ASSIGN(prepared.transform_,
               post_transform(attributes.get_string("post_transform", "NONE")));
    SDX_ASSIGN(prepared.base_, base_values(attributes));
    return prepared;
  }

  static Result<PreparedRegressor> of_positions(const Attributes& attributes) {
    using Aggregate = TreeEnsemble::Aggregate;
    constexpr std::array kAggregates = {Aggregate::Average, Aggregate::Sum, Aggregate::Min,
                                        Aggregate::Max};
    constexpr std::array kTransforms = {PostTransform::None, PostTransform::Softmax,
                                        PostTransform::Logistic, PostTransform::SoftmaxZero,
                                        PostTransform::Probit};
    const std::int64_t aggregate = attributes.get_int("aggregate_function", 1);
    const std::int64_t transform = attributes.get_int("post_transform", 0);
    if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4) {
      return failure(Code::InvalidModel,
                     "aggregate_function {} and post_transform {} are not known", aggregate,
                     transform);
    }
    PreparedRegressor prepared;
    SDX_ASSIGN(prepared.trees_, TreeEnsemble::from_positions(attributes));
    prepared.trees_.aggregate = kAggregates[static_cast<std::size_t>(aggregate)];
    prepared.transform_ = kTransforms[static_cast<std::size_t>(transform)];
    return prepared;
  }

  Status evaluate(EvalContext& context) const override {
    return run_regressor(context, trees_, transform_, base_);
  }

 private:
  TreeEnsemble trees_;
  PostTransform transform_ = PostTransform::None;
  std::vector<double> base_;
};

Status evaluate_tree_regressor(EvalContext& context) {
  SDX_ASSIGN(const auto prepared, PreparedRegressor::of_ids(context.attributes()));
  return prepared.evaluate(context);
}

Status evaluate_tree_ensemble(EvalContext& context) {
  SDX_ASSIGN(const auto prepared, PreparedRegressor::of_positions(context.attributes()));
  return prepared.evaluate(context);
}

/// weights [outputs, features] times a row, plus the intercepts.
void multiply(std::span<const float> weights, std::span<const float> intercepts,
              std::span<const double> row, std::span<double> outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    double sum = intercepts.empty() ? 0.0 : static_cast<double>(intercepts[i]);
    for (std::size_t k = 0; k < row.size(); ++k) {
      sum += static_cast<double>(weights[i * row.size() + k]) * row[k];
    }
    outputs[i] = sum;
  }
}

Status check_linear(const EvalContext& context, std::size_t outputs, const Table& table) {
  const auto& weights = context.attributes().get_floats("coefficients");
  const auto& intercepts = context.attributes().get_floats("intercepts");
  const bool fits = weights.size() == outputs * static_cast<std::size_t>(table.features) &&
                    (intercepts.empty() || intercepts.size() == outputs);
  if (fits) return {};
  return context.error(
      "coefficients has {} and intercepts {} elements, expected {} and {} for rows of {}",
      weights.size(), intercepts.size(), outputs * static_cast<std::size_t>(table.features),
      outputs, table.features);
}

Status infer_linear_regressor(InferContext& context) { return infer_targets(context, "targets"); }

Status evaluate_linear_regressor(EvalContext& context) {
  const Attributes& attributes = context.attributes();
  const Table table = table_of(context.tensor(0));
  const auto targets = static_cast<std::size_t>(attributes.get_int("targets", 1));
  SDX_TRY(check_linear(context, targets, table));
  SDX_ASSIGN(const PostTransform transform,
             post_transform(attributes.get_string("post_transform", "NONE")));
  SDX_ASSIGN(const Tensor x, as_doubles(context.tensor(0)));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  std::vector<double> scores(targets);
  const auto width = static_cast<std::size_t>(table.features);
  std::size_t to = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(table.rows); ++row) {
    multiply(attributes.get_floats("coefficients"), attributes.get_floats("intercepts"),
             x.values<double>().subspan(row * width, width), scores);
    transform_scores(transform, scores);
    for (const double score : scores) {
      y->mutable_values<float>()[to++] = static_cast<float>(score);
    }
  }
  return {};
}

Status evaluate_linear_classifier(EvalContext& context) {
  const Attributes& attributes = context.attributes();
  const Table table = table_of(context.tensor(0));
  const std::size_t labels = labels_of(attributes).size();
  const auto features = static_cast<std::size_t>(table.features);
  const std::size_t weights = attributes.get_floats("coefficients").size();
  // One row of coefficients is enough for two classes.
  const bool is_single = labels == 2 && weights == features;
  std::vector<double> scores(is_single ? 1 : labels);
  SDX_TRY(check_linear(context, scores.size(), table));
  SDX_ASSIGN(const PostTransform transform,
             post_transform(attributes.get_string("post_transform", "NONE")));
  SDX_ASSIGN(const Tensor x, as_doubles(context.tensor(0)));
  Predictions predictions(context, table.rows);
  std::size_t outputs = labels;
  std::vector<double> row_scores;
  for (std::size_t row = 0; row < static_cast<std::size_t>(table.rows); ++row) {
    multiply(attributes.get_floats("coefficients"), attributes.get_floats("intercepts"),
             x.values<double>().subspan(row * features, features), scores);
    const std::size_t label =
        scores.size() == 1 ? static_cast<std::size_t>(scores[0] > 0.0) : largest(scores);
    row_scores = scores;
    if (is_single) {
      row_scores = two_scores(
          transform, scores[0],
          transform == PostTransform::Logistic ? SecondClass::Opposite : SecondClass::Complement);
    } else {
      transform_scores(transform, row_scores);
    }
    predictions.add(label, row_scores);
    outputs = row_scores.size();
  }
  return predictions.write(outputs);
}

constexpr DTypeSet kNumbers = set_of(DType::Float32, DType::Float64, DType::Int32, DType::Int64);

constexpr OpSchema kRows[] = {
    {"ai.onnx.ml",
     "LinearClassifier",
     1,
     {"T>XF", kNumbers},
     "classlabels_ints:is classlabels_strings:ss coefficients:fs! intercepts:fs multi_class:i "
     "post_transform:s",
     infer_classifier,
     evaluate_linear_classifier},
    {"ai.onnx.ml",
     "LinearRegressor",
     1,
     {"T>F", kNumbers},
     "coefficients:fs intercepts:fs post_transform:s targets:i",
     infer_linear_regressor,
     evaluate_linear_regressor},
    {"ai.onnx.ml",
     "TreeEnsembleClassifier",
     1,
     {"T>XF", kNumbers},
     "base_values:fs class_ids:is class_nodeids:is class_treeids:is class_weights:fs "
     "classlabels_int64s:is classlabels_strings:ss nodes_falsenodeids:is nodes_featureids:is "
     "nodes_hitrates:fs nodes_missing_value_tracks_true:is nodes_modes:ss nodes_nodeids:is "
     "nodes_treeids:is nodes_truenodeids:is nodes_values:fs post_transform:s",
     infer_classifier,
     evaluate_tree_classifier},
    {"ai.onnx.ml",
     "TreeEnsembleClassifier",
     3,
     {"T>XF", kNumbers},
     "base_values:fs base_values_as_tensor:t class_ids:is class_nodeids:is class_treeids:is "
     "class_weights:fs class_weights_as_tensor:t classlabels_int64s:is classlabels_strings:ss "
     "nodes_falsenodeids:is nodes_featureids:is nodes_hitrates:fs nodes_hitrates_as_tensor:t "
     "nodes_missing_value_tracks_true:is nodes_modes:ss nodes_nodeids:is nodes_treeids:is "
     "nodes_truenodeids:is nodes_values:fs nodes_values_as_tensor:t post_transform:s",
     infer_classifier,
     evaluate_tree_classifier},
    {"ai.onnx.ml",
     "TreeEnsembleClassifier",
     5,
     {"T>XF", kNumbers},
     "base_values:fs base_values_as_tensor:t class_ids:is class_nodeids:is class_treeids:is "
     "class_weights:fs class_weights_as_tensor:t classlabels_int64s:is classlabels_strings:ss "
     "nodes_falsenodeids:is nodes_featureids:is nodes_hitrates:fs nodes_hitrates_as_tensor:t "
     "nodes_missing_value_tracks_true:is nodes_modes:ss nodes_nodeids:is nodes_treeids:is "
     "nodes_truenodeids:is nodes_values:fs nodes_values_as_tensor:t post_transform:s",
     infer_classifier,
     evaluate_tree_classifier,
     kDeprecated},
    {"ai.onnx.ml",
     "TreeEnsembleRegressor",
     1,
     {"T>F", kNumbers},
     "aggregate_function:s base_values:fs n_targets:i nodes_falsenodeids:is nodes_featureids:is "
     "nodes_hitrates:fs nodes_missing_value_tracks_true:is nodes_modes:ss nodes_nodeids:is "
     "nodes_treeids:is nodes_truenodeids:is nodes_values:fs post_transform:s target_ids:is "
     "target_nodeids:is target_treeids:is target_weights:fs",
     infer_tree_regressor,
     evaluate_tree_regressor},
    {"ai.onnx.ml",
     "TreeEnsembleRegressor",
     3,
     {"T>F", kNumbers},
     "aggregate_function:s base_values:fs base_values_as_tensor:t n_targets:i "
     "nodes_falsenodeids:is nodes_featureids:is nodes_hitrates:fs nodes_hitrates_as_tensor:t "
     "nodes_missing_value_tracks_true:is nodes_modes:ss nodes_nodeids:is nodes_treeids:is "
     "nodes_truenodeids:is nodes_values:fs nodes_values_as_tensor:t post_transform:s "
     "target_ids:is target_nodeids:is target_treeids:is target_weights:fs "
     "target_weights_as_tensor:t",
     infer_tree_regressor,
     evaluate_tree_regressor},
    {"ai.onnx.ml",
     "TreeEnsembleRegressor",
     5,
     {"T>F", kNumbers},
     "aggregate_function:s base_values:fs base_values_as_tensor:t n_targets:i "
     "nodes_falsenodeids:is nodes_featureids:is nodes_hitrates:fs nodes_hitrates_as_tensor:t "
     "nodes_missing_value_tracks_true:is nodes_modes:ss nodes_nodeids:is nodes_treeids:is "
     "nodes_truenodeids:is nodes_values:fs nodes_values_as_tensor:t post_transform:s "
     "target_ids:is target_nodeids:is target_treeids:is target_weights:fs "
     "target_weights_as_tensor:t",
     infer_tree_regressor,
     evaluate_tree_regressor,
     kDeprecated},
    {"ai.onnx.ml",
     "TreeEnsemble",
     5,
     {"T>T", kFloats},
     "aggregate_function:i leaf_targetids:is! leaf_weights:t! membership_values:t n_targets:i "
     "nodes_falseleafs:is! nodes_falsenodeids:is! nodes_featureids:is! nodes_hitrates:t "
     "nodes_missing_value_tracks_true:is nodes_modes:t! nodes_splits:t! nodes_trueleafs:is! "
     "nodes_truenodeids:is! post_transform:i tree_roots:is!",
     infer_tree_regressor,
     evaluate_tree_ensemble},
};

}  // namespace

std::unique_ptr<const PreparedEvaluation> prepare_evaluation(const Node& node) {
  if (node.domain != "ai.onnx.ml") return nullptr;
  const auto kept = [](auto prepared) -> std::unique_ptr<const PreparedEvaluation> {
    if (!prepared.ok()) return nullptr;
    using Prepared = std::remove_cvref_t<decltype(*prepared)>;
    return std::make_unique<const Prepared>(std::move(prepared).value());
  };
  const Attributes& attributes = node.attributes;
  if (node.op_type == "TreeEnsembleClassifier") return kept(PreparedTreeClassifier::of(attributes));
  if (node.op_type == "TreeEnsembleRegressor") return kept(PreparedRegressor::of_ids(attributes));
  if (node.op_type == "TreeEnsemble") return kept(PreparedRegressor::of_positions(attributes));
  return nullptr;
}

std::span<const OpSchema> ml_model_schemas() { return kRows; }

}  // namespace sardonyx
