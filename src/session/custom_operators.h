#pragma once

#include <span>

#include "base/status.h"
#include "ir/custom_operator.h"
#include "ir/graph.h"

namespace sardonyx {

/// Points the nodes of the graph and its subgraphs at the custom operators that serve them. An
/// entry wins over an operator of the library of the same name.
/// Errors   Unsupported for an entry that would replace a standard ONNX operator.
Status bind_custom_operators(Graph& graph, std::span<const CustomOperatorEntry> entries);

}  // namespace sardonyx
