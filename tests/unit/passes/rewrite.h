#pragma once

#include <algorithm>
#include <cmath>

#include "passes/passes.h"
#include "passes/pipeline.h"
#include "unit/small_graph.h"

namespace sardonyx {

/// The operators of a graph's live nodes in order: "Conv Relu".
inline std::string ops_of(const Graph& graph) {
  auto order = graph.topological_order();
  REQUIRE(order.ok());
  std::string text;
  for (const NodeId id : *order) text += (text.empty() ? "" : " ") + graph.node(id).op_type;
  return text;
}

using PassFn = Status (*)(Graph&, const PassOptions&);

/// The operators after a pass and the removal of what it left; the results must stay as they were.
inline std::string rewritten(SmallGraph& small, PassFn pass, const std::vector<Datum>& fed,
                             double error = 1e-5) {
  small.infer();
  const auto expected = evaluated(small.graph, fed);
  std::vector<std::string> names;
  for (const ValueId id : small.graph.outputs()) names.push_back(small.graph.value(id).name);
  Status status = pass(small.graph, {});
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  status = remove_dead_nodes(small.graph, {});
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  small.infer();
  for (std::size_t i = 0; i < names.size(); ++i) {
    CHECK(small.graph.value(small.graph.outputs()[i]).name == names[i]);
  }
  const auto found = evaluated(small.graph, fed);
  REQUIRE(found.size() == expected.size());
  for (std::size_t k = 0; k < found.size(); ++k) {
    CHECK(found[k].tensor()->shape().to_string() == expected[k].tensor()->shape().to_string());
    CHECK(found[k].tensor()->dtype() == expected[k].tensor()->dtype());
    if (found[k].tensor()->shape() != expected[k].tensor()->shape()) continue;
    if (found[k].tensor()->dtype() != DType::Float32) continue;
    const auto a = found[k].tensor()->values<float>();
    const auto b = expected[k].tensor()->values<float>();
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      worst = std::max<double>(worst, std::abs(a[i] - b[i]) / (1 + std::abs(b[i])));
    }
    CHECK(worst <= error);
  }
  return ops_of(small.graph);
}

}  // namespace sardonyx
