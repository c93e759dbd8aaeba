#include "unit/cpu/node_case.h"

using namespace sardonyx;

namespace {

using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;

/// Two stumps, on the first and on the last of `features`.
NodeCase stumps(const std::string& op, const std::string& weights, Dim features) {
  NodeCase node(op, 3, "ai.onnx.ml");
  node.attribute("nodes_treeids", Ints{0, 0, 0, 1, 1, 1})
      .attribute("nodes_nodeids", Ints{0, 1, 2, 0, 1, 2})
      .attribute("nodes_featureids", Ints{0, 0, 0, features - 1, 0, 0})
      .attribute("nodes_values", Floats{0.25F, 0, 0, -0.5F, 0, 0})
      .attribute("nodes_modes", std::vector<std::string>{"BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT",
                                                         "LEAF", "LEAF"})
      .attribute("nodes_truenodeids", Ints{1, 0, 0, 1, 0, 0})
      .attribute("nodes_falsenodeids", Ints{2, 0, 0, 2, 0, 0})
      .attribute(weights + "_treeids", Ints{0, 0, 1, 1})
      .attribute(weights + "_nodeids", Ints{1, 2, 1, 2})
      .attribute(weights + "_ids", Ints{0, 1, 1, 0})
      .attribute(weights + "_weights", Floats{0.5F, -1, 2, 0.125F});
  return node;
}

}  // namespace

TEST_CASE("forests that are built once are as evaluated from their attributes") {
  Source source(61);
  for (const Dim rows : {1, 5}) {
    NodeCase classifier = stumps("TreeEnsembleClassifier", "class", 3);
    classifier.input(source.floats({rows, 3}))
        .attribute("classlabels_int64s", Ints{7, 9})
        .attribute("post_transform", std::string("SOFTMAX"))
        .outputs(2);
    CHECK(classifier.difference({}) == "");
    NodeCase regressor = stumps("TreeEnsembleRegressor", "target", 3);
    regressor.input(source.floats({rows, 3}))
        .attribute("n_targets", std::int64_t{2})
        .attribute("base_values", Floats{1, 2})
        .attribute("aggregate_function", std::string("AVERAGE"));
    CHECK(regressor.difference({}) == "");
  }
}

TEST_CASE("forests that cannot be built are refused in the evaluator's words") {
  Source source(62);
  NodeCase aggregate = stumps("TreeEnsembleRegressor", "target", 3);
  aggregate.input(source.floats({2, 3}))
      .attribute("n_targets", std::int64_t{2})
      .attribute("aggregate_function", std::string("MEDIAN"));
  CHECK(aggregate.refusal().find("MEDIAN") != std::string::npos);
  CHECK(aggregate.difference({}) == "");
  NodeCase features = stumps("TreeEnsembleRegressor", "target", 4);
  features.input(source.floats({2, 3})).attribute("n_targets", std::int64_t{2});
  CHECK(features.refusal().find("feature 3") != std::string::npos);
  CHECK(features.difference({}) == "");
}
