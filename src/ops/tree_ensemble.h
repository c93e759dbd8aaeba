#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "ir/attribute.h"
#include "ops/ml_score.h"

namespace sardonyx {

/// A forest of decision trees in one array, built once from a node's attributes and read by any
/// number of threads.
///
/// Source   the attributes of TreeEnsembleRegressor and TreeEnsembleClassifier (nodes named by tree
///          and node id) and of TreeEnsemble (nodes named by position).
class TreeEnsemble {
 public:
  enum class Mode : std::uint8_t {
    LessOrEqual, Less, GreaterOrEqual, Greater, Equal, NotEqual, Member, Leaf
  };
  enum class Aggregate { Sum, Average, Min, Max };

  /// How the outputs of the trees for one row are put together.
  struct Totals {
    std::vector<double> scores;
    /// Whether any leaf that was reached names the output.
    std::vector<std::uint8_t> has_score;
  };

  /// `prefix` is "target" or "class": whose weights to take.
  /// Errors   InvalidModel for lists that disagree in length, ids that name nothing, cycles, trees
  ///          without a root and weights for outputs outside [0, outputs).
  static Result<TreeEnsemble> from_ids(const Attributes& attributes, std::string_view prefix,
                                       std::int64_t outputs);
  static Result<TreeEnsemble> from_positions(const Attributes& attributes);

  std::int64_t outputs() const { return outputs_; }
  /// Rows must have more features than this.
  std::int64_t last_feature() const { return last_feature_; }
  std::size_t tree_count() const { return roots_.size(); }
  Aggregate aggregate = Aggregate::Sum;

  /// Runs one row through all trees. `totals` is sized on the way, so that it can be used again.
  void evaluate(std::span<const double> row, Totals& totals) const;

 private:
  struct Node {
    double split = 0.0;
    std::int32_t feature = 0;
    /// Children; for a leaf, its weights [on_true, on_false). For Member also see members.
    std::int32_t on_true = 0;
    std::int32_t on_false = 0;
    Mode mode = Mode::Leaf;
    bool nan_is_true = false;
    /// Values of a Member node: [members_begin, members_end) of members_.
    std::int32_t members_begin = 0;
    std::int32_t members_end = 0;
  };
  struct Weight {
    std::int32_t output = 0;
    double value = 0.0;
  };
  struct Builder;

  const Node& leaf(std::span<const double> row, std::int32_t root) const;
  bool goes_true(const Node& node, double value) const;
  Status check_graph(bool needs_all) const;

  std::vector<Node> nodes_;
  std::vector<std::int32_t> roots_;
  std::vector<Weight> weights_;
  std::vector<double> members_;
  std::int64_t outputs_ = 0;
  std::int64_t last_feature_ = -1;
};

}  // namespace sardonyx
