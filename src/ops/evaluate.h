#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "ops/schema.h"

namespace sardonyx {

struct EvaluateOptions {
  /// Set from another thread to stop; may be null.
  const std::atomic<bool>* cancel = nullptr;
  std::uint64_t seed = 0;
};

/// Runs graphs with the plain evaluators alone: slow, and the oracle for everything else.
class Evaluator {
 public:
  /// `graph` (with functions inlined) must outlive the evaluator and not change.
  static Result<Evaluator> create(const Graph& graph);

  /// Outputs in graph order for inputs in graph order; an input with a default may be a Datum
  /// without value. `captured` are the values of graph.captures(), in order.
  Result<std::vector<Datum>> run(std::span<const Datum> inputs, std::span<const Datum> captured,
                                 const EvaluateOptions& options) const;

 private:
  struct Step {
    NodeId node;
    const OpSchema* schema;
  };
  class Context;

  const Graph* graph_ = nullptr;
  std::vector<Step> steps_;
  std::unordered_map<const Graph*, std::unique_ptr<Evaluator>> subgraphs_;
};

/// Evaluates one node on given inputs. `inputs[i]` is null where an input is left out.
/// Errors   whatever the operator refuses; OutOfMemory when outputs of inferred shape would take
///          more than `bytes_max`. The message does not name the node yet.
/// Only for nodes without subgraphs.
Result<std::vector<Datum>> evaluate_node(const Node& node, const OpSchema& schema,
                                         const Graph& graph, std::span<const Datum* const> inputs,
                                         std::size_t bytes_max = SIZE_MAX);

}  // namespace sardonyx
