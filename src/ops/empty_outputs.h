#pragma once

#include <span>

#include "ir/graph.h"
#include "ops/schema.h"

namespace sardonyx {

/// Whether the outputs of these inferred types are all tensors without elements, so that there is
/// nothing to compute: the other dimensions of such tensors may be of any size.
bool has_no_elements(const Node& node, const OpSchema& schema, std::span<const Type> types);

}  // namespace sardonyx
