#pragma once

#include <memory>

#include "ops/eval_context.h"

namespace sardonyx {

/// An evaluator together with what it makes of a node's attributes alone, for many runs.
class PreparedEvaluation {
 public:
  virtual ~PreparedEvaluation() = default;
  /// As the operator's EvaluateFn. Thread-safe.
  virtual Status evaluate(EvalContext& context) const = 0;
};

/// For operators whose attributes are a whole model, forests of trees. Null for others, and for
/// attributes that the evaluator will refuse.
std::unique_ptr<const PreparedEvaluation> prepare_evaluation(const Node& node);

}  // namespace sardonyx
