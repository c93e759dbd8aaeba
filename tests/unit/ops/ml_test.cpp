#include <limits>

#include "op_case.h"

using namespace sardonyx;

namespace {

using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;
using Texts = std::vector<std::string>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// One tree: x <= 0.5 ? leaf 1 (10) : leaf 2 (20), with `on_true` in place of leaf 1.
OpCase stump(std::int64_t on_true = 1) {
  return OpCase("TreeEnsembleRegressor", 3, "ai.onnx.ml")
      .attribute("nodes_treeids", Ints{0, 0, 0})
      .attribute("nodes_nodeids", Ints{0, 1, 2})
      .attribute("nodes_featureids", Ints{0, 0, 0})
      .attribute("nodes_modes", Texts{"BRANCH_LEQ", "LEAF", "LEAF"})
      .attribute("nodes_values", Floats{0.5F, 0, 0})
      .attribute("nodes_truenodeids", Ints{on_true, 0, 0})
      .attribute("nodes_falsenodeids", Ints{2, 0, 0})
      .attribute("target_treeids", Ints{0, 0})
      .attribute("target_nodeids", Ints{1, 2})
      .attribute("target_ids", Ints{0, 0})
      .attribute("target_weights", Floats{10, 20})
      .attribute("n_targets", std::int64_t{1});
}

}  // namespace

TEST_CASE("trees send a value that is not a number to the false side") {
  CHECK(elements<float>(stump().input(tensor_of<float>({3, 1}, {0.5F, 0.6F, kNan})).tensor()) ==
        Floats{10, 20, 20});
}

TEST_CASE("trees refuse ids that name nothing, cycles and features that rows do not have") {
  const Tensor x = tensor_of<float>({1, 1}, {0});
  CHECK(stump(7).input(x).error() == "there is no node 7 in tree 0");
  CHECK(stump(0).input(x).error() == "a tree has no root: its nodes form a cycle");
  CHECK(stump().input(tensor_of<float>({1, 0}, {})).error() ==
        "the trees use feature 0, but rows have 0");
}

TEST_CASE("LabelEncoder finds a key that is not a number, and has a default for the rest") {
  CHECK(elements<std::string>(OpCase("LabelEncoder", 2, "ai.onnx.ml")
                                  .input(tensor_of<float>({3}, {kNan, 1, 2}))
                                  .attribute("keys_floats", Floats{1, kNan})
                                  .attribute("values_strings", Texts{"one", "none"})
                                  .tensor()) == Texts{"none", "one", "_Unused"});
}

TEST_CASE("Scaler and Normalizer work on the last axis") {
  CHECK(elements<float>(OpCase("Scaler", 1, "ai.onnx.ml")
                            .input(tensor_of<std::int64_t>({2, 2}, {1, 2, 3, 4}))
                            .attribute("offset", Floats{1, 2})
                            .attribute("scale", Floats{2})
                            .tensor()) == Floats{0, 0, 4, 4});
  CHECK(elements<float>(OpCase("Normalizer", 1, "ai.onnx.ml")
                            .input(tensor_of<float>({2, 2}, {1, 3, 0, 0}))
                            .attribute("norm", std::string("L1"))
                            .tensor()) == Floats{0.25F, 0.75F, 0, 0});
}

TEST_CASE("ZipMap pairs labels with the scores of each row") {
  const auto result = OpCase("ZipMap", 1, "ai.onnx.ml")
                          .input(tensor_of<float>({2, 2}, {1, 2, 3, 4}))
                          .attribute("classlabels_strings", Texts{"a", "b"})
                          .evaluate();
  REQUIRE(result.ok());
  const Sequence* rows = result->at(0).sequence();
  REQUIRE(rows != nullptr);
  REQUIRE(rows->items.size() == 2);
  CHECK(elements<float>(rows->items[1].map()->values) == Floats{3, 4});
  CHECK(elements<std::string>(rows->items[1].map()->keys) == Texts{"a", "b"});
}
