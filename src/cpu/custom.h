#pragma once

#include <memory>

#include "base/status.h"
#include "exec/kernel.h"
#include "ir/graph.h"

namespace sardonyx {

/// The kernel of a node that has a CustomOperator: it runs what the operator's own code makes.
Result<std::unique_ptr<Kernel>> create_custom_kernel(const Graph& graph, const Node& node);

}  // namespace sardonyx
