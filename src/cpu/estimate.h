#pragma once

#include "base/status.h"
#include "cpu/packed_weights.h"
#include "ep/provider.h"
#include "exec/program.h"
#include "ir/graph.h"

namespace sardonyx {

/// What a compiled part takes, from its program and the weights that it asked for, none of which
/// need to be made.
///
/// Numbers  `source` is the graph before the provider's passes, `graph` the one that was lowered.
///          Pages of mapped weights count once, however many values lie in them; of a table that
///          only Gather reads, those that the planned number of rows can touch. The arena is that
///          of the inputs' declared shapes; results count with it.
/// Errors   those of planning, naming the node.
Result<PartEstimate> estimate_part(const Graph& source, const Graph& graph, const Program& program,
                                   const PackedWeights& weights);

}  // namespace sardonyx
