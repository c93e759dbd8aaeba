#pragma once

#include "base/status.h"
#include "cpu/packed_weights.h"
#include "exec/program.h"
#include "ir/graph.h"

namespace sardonyx {

/// Turns a graph, whose types are inferred, into a program of kernel calls. Constants are shared
/// with the graph; one at an odd address is copied unless all its uses read it where it stands. One
/// that no kernel reads, since it is packed, has no elements in the program.
/// Errors   of kernels that refuse their node, naming it.
Result<Program> lower(const Graph& graph, PackedWeights& weights, int thread_count);

}  // namespace sardonyx
