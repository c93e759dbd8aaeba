#pragma once

#include <string>

#include "base/status.h"
#include "ir/graph.h"

namespace sardonyx {

/// Takes constants of a graph, of which nothing tells where they come from, from the initializers
/// of their names in a model file: for graphs that were read through another runtime. One with
/// other elements stays as it is. Errors   those of reading the model. Cost     reads the model's
/// structure, and the constants' bytes.
Status find_origins(Graph& graph, const std::string& model_path);

}  // namespace sardonyx
