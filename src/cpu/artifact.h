#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "cpu/packed_weights.h"
#include "ep/artifact.h"
#include "exec/program.h"
#include "ir/graph.h"

namespace sardonyx {

/// Writes a graph after all passes, with its weights: those that only packed forms are read of in
/// these forms, others as they are; or, when they stay with their source, where they are.
/// Cost     memory for the largest weight. Pages of mapped weights are let go when they are done.
Status save_graph(const Graph& graph, const CompileOptions& options, ArtifactWriter& writer);

/// A graph that save_graph() wrote, its types inferred anew, and its packed weights.
struct SavedGraph {
  Graph graph;
  /// Empty for a graph whose weights are with their source.
  PackingRecord packing;
  bool is_weightless = false;
};
/// Errors   InvalidModel for what is damaged.
Result<SavedGraph> read_graph(const Artifact& artifact);

/// The values whose elements the program does not read: they have a packed form.
std::vector<ValueId> unread_constants(const Program& program);

}  // namespace sardonyx
